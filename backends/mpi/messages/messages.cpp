#include "backends/mpi/messages/messages.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

constexpr Index smallest_part = 32;  // pieces smaller than this part of the wanted size are not worth packing
constexpr Index largest_piece_bytes = Index{1} << 30;  // MPI counts it in an int
constexpr Index smallest_piece_bytes = 16;             // holds an element of any dtype
constexpr Index smallest_bounce_bytes = 4096;          // for a stage

class BoundRun final : public MessageBound {
public:
    BoundRun(RunPlan plan, std::shared_ptr<const Arena> arena, std::vector<StageBuffers> stage_buffers,
             std::size_t steps)
        : arena_(std::move(arena)),
          plan_(std::move(plan)),
          stage_buffers_(std::move(stage_buffers)),
          step_seconds_(steps, 0.0) {}
    Result<void> renew() override {
        for (StageBuffers& stage : stage_buffers_) {
            if (stage.node) {
                RESHARD_CHECK(stage.node->renew(*arena_));
            }
            for (ShmAddresses& sum : stage.sums) {
                RESHARD_CHECK(sum.renew(*arena_));
            }
        }
        return {};
    }
    bool unbind() override {
        const auto stays = [](ShmAddresses& addresses) { return addresses.unbind(); };
        return std::ranges::all_of(stage_buffers_, [&](StageBuffers& stage) {
            return (!stage.node || stays(*stage.node)) && std::ranges::all_of(stage.sums, stays);
        });
    }
    Result<std::unique_ptr<Ticket>> start() override {
        RunPlan plan = plan_;
        plan.stage_buffers = &stage_buffers_;
        plan.step_seconds = &step_seconds_;
        return std::make_unique<Run>(std::move(plan));
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return step_seconds_; }

private:
    std::shared_ptr<const Arena> arena_;
    RunPlan plan_;
    std::vector<StageBuffers> stage_buffers_;
    std::vector<double> step_seconds_;
};

// An array does not run beside others if it needs the whole workspace or adds up in staging.
bool runs_beside(const RankPlan& plan, std::span<const ReduceGroups> sums) {
    bool beside = plan.workspace_bytes == 0 || plan.turn > 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        beside = beside && (plan.steps[i].schedule.combine == Combine::copy || sums[i].inside);
    }
    return beside;
}

std::vector<const RankStep*> steps_of(const std::vector<MessagePlan>& plans) {
    std::vector<const RankStep*> steps;
    for (const MessagePlan& one : plans) {
        for (const RankStep& step : one.plan->steps) steps.push_back(&step);
    }
    return steps;
}

Index arriving_bytes(const std::vector<Channel>& channels) {
    Index bytes = 0;
    for (const Channel& channel : channels) {
        for (const Packet& piece : channel.pieces) bytes += channel.sends ? 0 : piece.bytes;
    }
    return bytes;
}

}  // namespace

Result<void> Messages::make(const MessageSetting& setting, const std::vector<MessagePlan>& plans, std::size_t arrays) {
    setting_ = setting;
    for (const MessagePlan& one : plans) steps_ += one.plan->steps.size();
    RESHARD_CHECK(all_succeeded(setting_.communicator, {}, steps_));
    RESHARD_CHECK(arrange(plans, arrays));
    RESHARD_CHECK(all_succeeded(setting_.communicator, make_node_plans(arrays), steps_));
    RESHARD_CHECK(all_succeeded(setting_.communicator, make_sum_plans(arrays), steps_));
    RESHARD_CHECK(find_part_bytes());
    RESHARD_TRY(const auto& cut, in_pieces());
    RESHARD_CHECK(all_succeeded(setting_.communicator, make_steps(cut), steps_));
    RESHARD_CHECK(make_all_channels());
    RESHARD_CHECK(all_succeeded(setting_.communicator, take_staging(), steps_));
    RESHARD_CHECK(make_groups());
    if (arrays == 1 && setting_.nodes->is_all() && InsideRun::fits(stages_)) inside_.emplace();
    return {};
}

Result<void> Messages::take_staging() {
    const Index bytes = std::max(sum_bytes_, channel_bytes_);
    if (bytes == 0) return {};
    RESHARD_ASSIGN(staging_, setting_.arena->take(bytes));
    return {};
}

Index Messages::held_by_nodes() const {
    Index bytes = 0;
    for (const Stage& stage : stages_) {
        bytes += stage.node ? stage.node->held_bytes() : 0;
        for (const auto& sum : stage.sums) bytes += sum->held_bytes();
    }
    return bytes;
}

Index Messages::staging_bytes() const {
    return held_by_nodes() + (staging_ ? static_cast<Index>(staging_->bytes().size()) : 0);
}

std::string Messages::describe() const {
    const auto any_stage = [&](const auto& has) { return std::ranges::any_of(stages_, has); };
    const auto any_step = [&](const auto& has) {
        return any_stage([&](const Stage& stage) { return std::ranges::any_of(stage.steps, has); });
    };
    const bool inside = any_stage([](const Stage& stage) { return stage.node != nullptr; });
    const bool channels = any_stage([](const Stage& stage) { return !stage.channels.empty(); });
    const bool messages = channels || any_step([](const MessageStep& step) {
                              return step.reduction || !step.sends.empty() || !step.landings.empty();
                          });
    std::vector<std::string> ways;
    if (inside) ways.emplace_back("shared memory inside nodes");
    for (const Stage& stage : stages_) {
        for (const auto& sum : stage.sums) {
            if (std::string how = sum->describe(); std::ranges::find(ways, how) == ways.end()) ways.push_back(how);
        }
    }
    if (messages || ways.empty()) ways.emplace_back(ways.empty() ? "messages" : "messages between them");
    if (channels && framing_.piece_bytes > 0)
        ways.back() += fmt::format(" (pieces of up to {} bytes)", framing_.piece_bytes);
    const bool cast = std::ranges::any_of(order_, [](const std::vector<StageStep>& stage) {
        return std::ranges::any_of(stage, [](const StageStep& one) { return casts(one.rank_step()); });
    });
    if (cast) ways.emplace_back("and the cast is part of the copy");
    return fmt::format("{}", fmt::join(ways, ", "));
}

Result<std::unique_ptr<MessageBound>> Messages::bind(std::span<const Buffers> buffers) {
    std::vector<StageBuffers> stage_buffers;
    for (std::size_t i = 0; i < stages_.size(); ++i) {
        RESHARD_TRY(auto& bound, bind_stage(stages_[i], order_[i], *setting_.arena, buffers));
        stage_buffers.push_back(std::move(bound));
    }
    RunPlan plan{setting_.communicator,
                 setting_.standing,
                 setting_.nodes,
                 &stages_,
                 {buffers.begin(), buffers.end()},
                 nullptr,
                 staging_,
                 setting_.options.timeout,
                 nullptr};
    return std::make_unique<BoundRun>(std::move(plan), setting_.arena, std::move(stage_buffers), steps_);
}

void Messages::add_peers(std::set<int>& peers) const {
    const auto own = static_cast<int>(rank_of(setting_.communicator));
    for (const Stage& stage : stages_) {
        for (const Channel& channel : stage.channels) peers.insert(channel.peer);
        for (const MessageStep& step : stage.steps) {
            for (const Sends& sends : step.sends) peers.insert(sends.peer);
            for (const Landing& landing : step.landings) {
                if (landing.message) peers.insert(landing.message->peer);
            }
            if (step.reduction) peers.insert(step.reduction->members.begin(), step.reduction->members.end());
        }
    }
    peers.erase(own);
}

void Messages::add_signals(std::vector<Signals*>& signals) const {
    for (const Stage& stage : stages_) {
        if (stage.node) signals.push_back(&stage.node->signals());
        for (const auto& sum : stage.sums) signals.push_back(&sum->signals());
    }
}

std::vector<Communicator> Messages::take_communicators() {
    std::vector<Communicator> all;
    for (auto& [members, communicator] : groups_) all.push_back(std::move(communicator));
    groups_.clear();
    return all;
}

// If a footprint limit leaves no room for bounce buffers, the ranks of a node send each other messages too.
Result<void> Messages::arrange(const std::vector<MessagePlan>& plans, std::size_t arrays) {
    RESHARD_TRY(auto& sums, find_sums(*setting_.nodes, steps_of(plans)));
    for (const bool inside : {true, false}) {
        if (!inside) sums.assign(sums.size(), {});
        RESHARD_CHECK(order(plans, sums));
        RESHARD_TRY(const auto& room, find_room(arrays));
        if (room) return {};
    }
    inside_stages_.assign(order_.size(), 0);
    return {};
}

// All ranks vote, array by array, on the arrays that run beside others.
Result<void> Messages::order(const std::vector<MessagePlan>& plans, const std::vector<ReduceGroups>& sums) {
    std::vector<char> votes;
    for (std::size_t first = 0; const auto& [array, plan] : plans) {
        votes.push_back(runs_beside(*plan, std::span(sums).subspan(first)) ? 1 : 0);
        first += plan->steps.size();
    }
    RESHARD_TRY(const auto& agreed, least(setting_.communicator, std::move(votes)));
    std::vector<std::vector<StageStep>> arrays;
    std::vector<std::optional<std::size_t>> turns;
    std::size_t ordinal = 0;
    auto vote = agreed.begin();
    for (const auto& [array, plan] : plans) {
        turns.push_back(*vote++ == 0 ? std::nullopt : std::optional(plan->turn));
        std::vector<StageStep>& steps = arrays.emplace_back();
        for (std::size_t step = 0; step < plan->steps.size(); ++step) {
            steps.push_back({array, plan, step, ordinal, sums[ordinal].members});
            ++ordinal;
        }
    }
    order_ = stages_of(arrays, turns);
    stages_.resize(order_.size());
    return {};
}

// Bounce buffers get half of the room that is left, and all plans share it. The answer is the same on all ranks.
Result<bool> Messages::find_room(std::size_t arrays) {
    const NodeMap& nodes = *setting_.nodes;
    inside_options_ = setting_.options;
    inside_stages_.assign(order_.size(), 0);
    if (nodes.own.empty()) return true;
    std::vector<char> without;  // 1: no rank of the node moves anything to another in that stage
    for (const auto& stage : order_) without.push_back(moves_inside(stage, nodes) ? 0 : 1);
    RESHARD_TRY(const auto& still, least(nodes.own.get(), std::move(without)));
    std::ranges::transform(still, inside_stages_.begin(), [](char one) { return one == 0 ? 1 : 0; });
    auto plans = static_cast<Index>(std::ranges::count(still, 0));
    for (const auto& stage : order_) plans += static_cast<Index>(summing_ranks(stage).size());
    bool room = true;
    if (plans > 0) {
        const auto ranks = static_cast<Index>(nodes.members.size());
        const Index signals = plans * Signals::bytes(ranks, ShmCopyPlan::signal_addresses(arrays));
        inside_options_.bounce_bytes =
            std::min(inside_options_.bounce_bytes, (setting_.staging_bytes_max - signals) / 2 / plans);
        room = inside_options_.bounce_bytes >=
               std::max(smallest_bounce_bytes, ShmReducePlan::smallest_bounce_bytes(ranks));
    }
    RESHARD_TRY(const auto& all, least(setting_.communicator, {static_cast<char>(room ? 1 : 0)}));
    return all.front() != 0;
}

Result<void> Messages::make_node_plans(std::size_t arrays) {
    for (std::size_t i = 0; i < order_.size(); ++i) {
        if (inside_stages_[i] == 0) continue;
        RESHARD_ASSIGN(stages_[i].node,
                       make_node_plan(order_[i], *setting_.nodes, arrays, setting_.arena, inside_options_));
    }
    return {};
}

// Even after a failure, a rank takes part in the sums that follow: their other members wait for it.
Result<void> Messages::make_sum_plans(std::size_t arrays) {
    Result<void> well;
    for (std::size_t i = 0; i < order_.size(); ++i) {
        for (const std::vector<Index>& members : summing_ranks(order_[i])) {
            auto communicator = join(members);
            auto made = communicator
                            ? make_sum_plan(order_[i], members, *communicator, arrays, setting_.arena, inside_options_)
                            : tl::unexpected(communicator.error());
            if (made) stages_[i].sums.push_back(std::move(*made));
            if (!made && well) well = tl::unexpected(made.error());
        }
    }
    return well;
}

// Parts are as large as every rank has room for, so that all ranks cut in the same way. They are no longer than a
// message: MPI sends a part one way and then back, and the next part passes it on the way.
Result<void> Messages::find_part_bytes() {
    constexpr int smallest = 4;  // a power of 2: an element of any dtype
    constexpr int largest = 20;  // a power of 2: the size of a bounce buffer too
    const Index room = std::min(setting_.options.staging_bytes, setting_.staging_bytes_max - held_by_nodes());
    int power = smallest;
    const Index message = setting_.options.piece_bytes > 0 ? setting_.options.piece_bytes : Index{1} << largest;
    while (power < largest && Index{2} << power <= message && staging_slots << (power + 1) <= room) ++power;
    RESHARD_TRY(const auto& agreed, least(setting_.communicator, {static_cast<char>(power)}));
    part_bytes_max_ = Index{1} << agreed.front();
    return {};
}

// A step is sent in pieces only if every rank can receive it in pieces.
Result<std::vector<char>> Messages::in_pieces() const {
    std::vector<char> alike;
    for (const auto& stage : order_) {
        for (const StageStep& one : stage) alike.push_back(receives_alike(one.rank_step().schedule) ? 1 : 0);
    }
    return least(setting_.communicator, std::move(alike));
}

Result<void> Messages::make_steps(const std::vector<char>& in_pieces) {
    std::vector<std::vector<Carriage>> carriages(order_.size());
    for (std::size_t i = 0, step = 0; i < order_.size(); ++i) {
        for (const StageStep& one : order_[i]) {
            const Index piece_bytes = std::min(setting_.options.piece_bytes, largest_piece_bytes);
            const Carriage& carriage =
                carriages[i].emplace_back(Carriage{stages_[i].node == nullptr, one.summing.empty(), 0, part_bytes_max_,
                                                   in_pieces[step++] != 0 ? piece_bytes : 0});
            if (!carriage.sums) continue;
            sum_bytes_ = std::max(sum_bytes_, staged_bytes(one.rank_step(), one.rank_step().from_dtype, carriage));
        }
    }
    for (std::size_t i = 0; i < order_.size(); ++i) {
        for (std::size_t k = 0; k < order_[i].size(); ++k) {
            const StageStep& one = order_[i][k];
            carriages[i][k].staging_bytes = sum_bytes_;
            RESHARD_TRY(auto& made,
                        make_message_step(one.rank_step(), one.rank_step().from_dtype, one.array, carriages[i][k]));
            stages_[i].steps.push_back(std::move(made));
            const Schedule& schedule = one.rank_step().schedule;
            const Index elements = count(schedule.source_tile) + count(schedule.target_tile);
            stages_[i].timed.push_back(
                {one.ordinal, static_cast<double>(elements * size_of(one.rank_step().from_dtype))});
        }
    }
    return {};
}

// The largest pieces that keep every rank within its bounds, and the same on all ranks, since both ends cut them.
Result<void> Messages::make_all_channels() {
    const Options& options = setting_.options;
    const Index room = std::min(options.staging_bytes, setting_.staging_bytes_max - held_by_nodes());
    const Index smallest = std::max(options.piece_bytes / smallest_part, smallest_piece_bytes);
    for (Index piece = std::min(options.piece_bytes, largest_piece_bytes); piece >= smallest; piece /= 2) {
        RESHARD_TRY(const auto& fits, channels_within({piece}, room));
        if (fits) return {};
    }
    const auto unstaged = channels_within({0}, room);
    return unstaged.map([](bool) {});
}

Result<bool> Messages::channels_within(const Framing& framing, Index room) {
    framing_ = framing;
    channel_bytes_ = 0;
    Result<void> made;
    const NodeMap alone = apart(setting_.communicator);
    for (std::size_t i = 0; i < order_.size() && made; ++i) {
        Index bytes = 0;
        auto channels = make_channels(order_[i], stages_[i].node ? *setting_.nodes : alone, framing, bytes);
        if (!channels) {
            made = tl::unexpected(channels.error());
            break;
        }
        stages_[i].channels = std::move(*channels);
        stages_[i].store = store_for(arriving_bytes(stages_[i].channels));
        channel_bytes_ = std::max(channel_bytes_, bytes);
    }
    RESHARD_CHECK(all_succeeded(setting_.communicator, made, steps_));
    RESHARD_TRY(const auto& fits, least(setting_.communicator, {static_cast<char>(channel_bytes_ <= room ? 1 : 0)}));
    return fits.front() != 0;
}

// The members of a group meet here step by step, in the same order on all ranks. Groups of one step are disjoint.
Result<void> Messages::make_groups() {
    for (Stage& stage : stages_) {
        for (MessageStep& step : stage.steps) {
            if (!step.reduction) continue;
            RESHARD_ASSIGN(step.reduction->communicator, join(step.reduction->members));
        }
    }
    return {};
}

Result<MPI_Comm> Messages::join(const std::vector<Index>& members) {
    auto found = groups_.find(members);
    if (found == groups_.end()) {
        RESHARD_CHECK(Lookout::look());  // the next call blocks, even if a rank has withdrawn
        RESHARD_TRY(auto& made, communicator_of(setting_.communicator, members));
        found = groups_.emplace(members, std::move(made)).first;
    }
    return found->second.get();
}

}  // namespace reshard::mpi
