#include "backends/mpi/messages.hpp"

#include <algorithm>

#include "backends/mpi/base.hpp"

namespace reshard::mpi {
namespace {

class MessageBound final : public Bound {
public:
    MessageBound(RunPlan plan, std::size_t steps) : plan_(std::move(plan)), step_seconds_(steps, 0.0) {}
    Result<std::unique_ptr<Ticket>> start() override {
        RunPlan plan = plan_;
        plan.step_seconds = &step_seconds_;
        return std::make_unique<Run>(std::move(plan));
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return step_seconds_; }

private:
    RunPlan plan_;
    std::vector<double> step_seconds_;
};

}  // namespace

Result<void> Messages::make(MPI_Comm communicator, const std::vector<MessagePlan>& plans, Arena& arena,
                            std::chrono::milliseconds patience) {
    communicator_ = communicator;
    patience_ = patience;
    for (const MessagePlan& one : plans) steps_ += one.plan->steps.size();
    auto gathers = votes_on_gathers(plans);
    if (!gathers) return tl::unexpected(gathers.error());
    const Result<void> made = make_steps(plans, *gathers, arena);
    if (auto all = all_succeeded(communicator_, made, steps_); !all) return all;
    return make_groups();
}

std::unique_ptr<Bound> Messages::bind(std::span<const Buffers> buffers) {
    RunPlan plan{communicator_, {}, staging_ ? staging_->bytes().data() : nullptr, patience_, nullptr};
    for (std::size_t i = 0; i < arrays_.size(); ++i) plan.arrays.push_back({&arrays_[i], buffers[numbers_[i]]});
    return std::make_unique<MessageBound>(std::move(plan), steps_);
}

// Whether a gather can be MPI's own depends on each member's storage, so all ranks vote, step by step.
Result<std::vector<char>> Messages::votes_on_gathers(const std::vector<MessagePlan>& plans) {
    if (auto same = all_succeeded(communicator_, {}, steps_); !same) return tl::unexpected(same.error());
    std::vector<char> votes;
    for (const auto& [array, plan] : plans) {
        for (const RankStep& step : plan->steps) votes.push_back(gathers_in_place(step, plan->dtype) ? 1 : 0);
    }
    std::vector<char> all(votes.size());
    const int code = MPI_Allreduce(votes.data(), all.data(), static_cast<int>(votes.size()), MPI_SIGNED_CHAR, MPI_MIN,
                                   communicator_);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return tl::unexpected(done.error());
    return all;
}

Result<void> Messages::make_steps(const std::vector<MessagePlan>& plans, const std::vector<char>& gathers,
                                  Arena& arena) {
    for (const auto& [array, plan] : plans) {
        for (const RankStep& step : plan->steps) slot_bytes_ = std::max(slot_bytes_, staged_bytes(step, plan->dtype));
    }
    if (slot_bytes_ > 0) {
        auto staging = arena.take(staging_bytes());
        if (!staging) return tl::unexpected(staging.error());
        staging_ = std::move(*staging);
    }
    std::size_t ordinal = 0;
    for (const auto& [array, plan] : plans) {
        numbers_.push_back(array);
        std::vector<WireStep>& steps = arrays_.emplace_back();
        for (const RankStep& step : plan->steps) {
            auto made = make_wire_step(step, plan->dtype, array, gathers[ordinal++] != 0, slot_bytes_);
            if (!made) return tl::unexpected(made.error());
            steps.push_back(std::move(*made));
        }
    }
    return {};
}

// Members meet here step by step, in the same order everywhere; groups of one step are disjoint.
Result<void> Messages::make_groups() {
    for (std::vector<WireStep>& steps : arrays_) {
        for (WireStep& step : steps) {
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
        auto made = communicator_of(communicator_, collective.members);
        if (!made) return tl::unexpected(made.error());
        found = groups_.emplace(collective.members, std::move(*made)).first;
    }
    collective.communicator = found->second.get();
    return {};
}

}  // namespace reshard::mpi
