#include "backends/mpi/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {
namespace {

constexpr Index smallest_part = 32;  // of a piece as the options want it; below it packing does not pay
constexpr Index largest_piece_bytes = Index{1} << 30;  // which MPI counts in an int
constexpr Index smallest_piece_bytes = 16;             // an element of any dtype
constexpr Index smallest_window_bytes = 4096;          // of a wave

class MessageBound final : public Bound {
public:
    MessageBound(RunPlan plan, std::vector<NodeBuffers> node_buffers, std::size_t steps)
        : plan_(std::move(plan)), node_buffers_(std::move(node_buffers)), step_seconds_(steps, 0.0) {}
    Result<std::unique_ptr<Ticket>> start() override {
        RunPlan plan = plan_;
        plan.node_buffers = &node_buffers_;
        plan.step_seconds = &step_seconds_;
        return std::make_unique<Run>(std::move(plan));
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return step_seconds_; }

private:
    RunPlan plan_;
    std::vector<NodeBuffers> node_buffers_;  // per wave
    std::vector<double> step_seconds_;
};

// Whether a gather can be MPI's own depends on each member's storage. Inside a node the sweep is faster.
bool gathers_well(const RankStep& step, DType dtype, const Nodes& nodes) {
    const bool inside = std::ranges::all_of(step.schedule.group, [&](Index rank) { return nodes.has(rank); });
    const bool member = !step.schedule.receives.empty() || !step.schedule.sends.empty();
    return gathers_in_place(step, dtype) && !(member && inside && !nodes.own.empty());
}

// An array that needs its workspace to itself, or adds up in staging, does not run beside others.
bool runs_beside(const RankPlan& plan) {
    return plan.workspace_bytes == 0 &&
           std::ranges::all_of(plan.steps, [](const RankStep& step) { return step.schedule.combine == Combine::copy; });
}

Index arriving_bytes(const std::vector<Stream>& streams) {
    Index bytes = 0;
    for (const Stream& stream : streams) {
        for (const Piece& piece : stream.pieces) bytes += stream.sends ? 0 : piece.bytes;
    }
    return bytes;
}

}  // namespace

Result<void> Messages::make(const MessageSetting& setting, const std::vector<MessagePlan>& plans, std::size_t arrays) {
    setting_ = setting;
    for (const MessagePlan& one : plans) steps_ += one.plan->steps.size();
    if (auto same = all_succeeded(setting_.communicator, {}, steps_); !same) return same;
    if (auto done = order(plans); !done) return done;
    const Result<void> inside = make_node_plans(arrays);
    if (auto all = all_succeeded(setting_.communicator, inside, steps_); !all) return all;
    const Result<void> made = make_steps();
    if (auto all = all_succeeded(setting_.communicator, made, steps_); !all) return all;
    if (auto done = make_all_streams(); !done) return done;
    Result<void> staged;
    if (const Index bytes = std::max(staging_slots * slot_bytes_, stream_bytes_); bytes > 0) {
        auto staging = setting_.arena->take(bytes);
        if (staging) staging_ = std::move(*staging);
        if (!staging) staged = tl::unexpected(staging.error());
    }
    if (auto all = all_succeeded(setting_.communicator, staged, steps_); !all) return all;
    return make_groups();
}

Index Messages::held_by_nodes() const {
    Index bytes = 0;
    for (const Wave& wave : waves_) bytes += wave.node ? wave.node->held_bytes() : 0;
    return bytes;
}

Index Messages::staging_bytes() const {
    return held_by_nodes() + (staging_ ? static_cast<Index>(staging_->bytes().size()) : 0);
}

std::string Messages::describe() const {
    const bool inside = std::ranges::any_of(waves_, [](const Wave& wave) { return wave.node != nullptr; });
    const bool between = std::ranges::any_of(waves_, [](const Wave& wave) { return !wave.streams.empty(); });
    std::string how = inside ? "shared memory inside nodes, messages" : "messages";
    if (inside) how += " between them";
    if (between && framing_.piece_bytes > 0) how += fmt::format(" (pieces of up to {} bytes)", framing_.piece_bytes);
    return how;
}

std::unique_ptr<Bound> Messages::bind(std::span<const Buffers> buffers) {
    std::vector<NodeBuffers> node_buffers(waves_.size());
    for (std::size_t i = 0; i < waves_.size(); ++i) {
        if (waves_[i].node) node_buffers[i] = bind_node(*waves_[i].node, order_[i], buffers);
    }
    RunPlan plan{setting_.communicator,
                 setting_.nodes,
                 &waves_,
                 {buffers.begin(), buffers.end()},
                 nullptr,
                 staging_ ? staging_->bytes().data() : nullptr,
                 setting_.options.patience,
                 nullptr};
    return std::make_unique<MessageBound>(std::move(plan), std::move(node_buffers), steps_);
}

// All ranks vote, array by array and step by step.
Result<void> Messages::order(const std::vector<MessagePlan>& plans) {
    std::vector<char> votes;
    for (const auto& [array, plan] : plans) {
        votes.push_back(runs_beside(*plan) ? 1 : 0);
        for (const RankStep& step : plan->steps) {
            votes.push_back(gathers_well(step, plan->dtype, *setting_.nodes) ? 1 : 0);
        }
    }
    const auto agreed = least(setting_.communicator, std::move(votes));
    if (!agreed) return tl::unexpected(agreed.error());
    std::vector<std::vector<WaveStep>> arrays;
    std::vector<char> alone;
    std::size_t ordinal = 0;
    auto vote = agreed->begin();
    for (const auto& [array, plan] : plans) {
        alone.push_back(*vote++ == 0 ? 1 : 0);
        std::vector<WaveStep>& steps = arrays.emplace_back();
        for (std::size_t step = 0; step < plan->steps.size(); ++step) {
            steps.push_back({array, plan, step, ordinal++, *vote++ != 0});
        }
    }
    order_ = waves_of(arrays, alone);
    waves_.resize(order_.size());
    return {};
}

// Where a footprint limit has no room for windows, the ranks of a node send each other messages too.
Result<void> Messages::make_node_plans(std::size_t arrays) {
    const Nodes& nodes = *setting_.nodes;
    if (nodes.own.empty()) return {};
    std::vector<char> without;  // waves in which no rank of the node moves anything to another
    for (const auto& wave : order_) without.push_back(moves_inside(wave, nodes) ? 0 : 1);
    const auto still = least(nodes.own.get(), std::move(without));
    if (!still) return tl::unexpected(still.error());
    const auto plans = static_cast<Index>(std::ranges::count(*still, 0));
    if (plans == 0) return {};
    const Index boards = plans * Board::bytes(static_cast<Index>(nodes.members.size()), 2 * arrays);
    BackendOptions options = setting_.options;
    options.window_bytes = std::min(options.window_bytes, (setting_.staging_bytes_max - boards) / 2 / plans);
    const auto room =
        least(nodes.own.get(), {static_cast<char>(options.window_bytes >= smallest_window_bytes ? 1 : 0)});
    if (!room) return tl::unexpected(room.error());
    for (std::size_t i = 0; i < order_.size() && room->front() != 0; ++i) {
        if ((*still)[i] != 0) continue;
        auto made = make_node_plan(order_[i], nodes, arrays, setting_.arena, options);
        if (!made) return tl::unexpected(made.error());
        waves_[i].node = std::move(*made);
    }
    return {};
}

Result<void> Messages::make_steps() {
    for (const auto& wave : order_) {
        for (const WaveStep& one : wave) {
            slot_bytes_ = std::max(slot_bytes_, staged_bytes(one.rank_step(), one.plan->dtype));
        }
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
        for (const WaveStep& one : order_[i]) {
            const Carriage carriage{one.gather, waves_[i].node == nullptr, slot_bytes_};
            auto made = make_wire_step(one.rank_step(), one.plan->dtype, one.array, carriage);
            if (!made) return tl::unexpected(made.error());
            waves_[i].steps.push_back(std::move(*made));
            const Schedule& schedule = one.rank_step().schedule;
            const Index elements = count(schedule.source_tile) + count(schedule.target_tile);
            waves_[i].timed.push_back({one.ordinal, static_cast<double>(elements * size_of(one.plan->dtype))});
        }
    }
    return {};
}

// The largest pieces with which every rank keeps its bounds; the same on all ranks, since both ends cut alike.
Result<void> Messages::make_all_streams() {
    const BackendOptions& options = setting_.options;
    const Index room = std::min(options.staging_bytes, setting_.staging_bytes_max - held_by_nodes());
    const Index smallest = std::max(options.piece_bytes / smallest_part, smallest_piece_bytes);
    for (Index piece = std::min(options.piece_bytes, largest_piece_bytes); piece >= smallest; piece /= 2) {
        const auto fits = stream_within({piece}, room);
        if (!fits) return tl::unexpected(fits.error());
        if (*fits) return {};
    }
    const auto unstaged = stream_within({0}, room);
    return unstaged.map([](bool) {});
}

Result<bool> Messages::stream_within(const Framing& framing, Index room) {
    framing_ = framing;
    stream_bytes_ = 0;
    Result<void> made;
    const Nodes alone = apart(setting_.communicator);
    for (std::size_t i = 0; i < order_.size() && made; ++i) {
        Index bytes = 0;
        auto streams = make_streams(order_[i], waves_[i].node ? *setting_.nodes : alone, framing, bytes);
        if (!streams) {
            made = tl::unexpected(streams.error());
            break;
        }
        waves_[i].streams = std::move(*streams);
        const bool large = arriving_bytes(waves_[i].streams) > last_cache_bytes() / 2;
        waves_[i].store = large ? Store::streaming : Store::cached;
        stream_bytes_ = std::max(stream_bytes_, bytes);
    }
    if (auto all = all_succeeded(setting_.communicator, made, steps_); !all) return tl::unexpected(all.error());
    const auto fits = least(setting_.communicator, {static_cast<char>(stream_bytes_ <= room ? 1 : 0)});
    if (!fits) return tl::unexpected(fits.error());
    return fits->front() != 0;
}

// Members meet here step by step, in the same order everywhere; groups of one step are disjoint.
Result<void> Messages::make_groups() {
    for (Wave& wave : waves_) {
        for (WireStep& step : wave.steps) {
            for (auto done : {step.gather ? join(*step.gather) : Result<void>{},
                              step.reduction ? join(*step.reduction) : Result<void>{}}) {
                if (!done) return done;
            }
        }
    }
    return {};
}

template <class Collective>
Result<void> Messages::join(Collective& collective) {
    auto found = groups_.find(collective.members);
    if (found == groups_.end()) {
        auto made = communicator_of(setting_.communicator, collective.members);
        if (!made) return tl::unexpected(made.error());
        found = groups_.emplace(collective.members, std::move(*made)).first;
    }
    collective.communicator = found->second.get();
    return {};
}

}  // namespace reshard::mpi
