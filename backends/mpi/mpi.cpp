// The MPI backend: makes datatypes and communicators once, and starts runs of them.
#include "reshard/mpi.hpp"

#include <algorithm>

#include "backends/mpi/base.hpp"
#include "backends/mpi/run.hpp"
#include "src/memory.hpp"

namespace reshard::mpi {
namespace {

class MpiBound final : public Bound {
public:
    MpiBound(RunPlan plan, std::size_t steps) : plan_(std::move(plan)), step_seconds_(steps, 0.0) {}
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

class MpiPrepared final : public Prepared {
public:
    explicit MpiPrepared(Communicator communicator) : communicator_(std::move(communicator)) {}

    // Collective.
    Result<void> make(const std::vector<RankPlan>& plans) {
        for (const RankPlan& plan : plans) steps_ += plan.steps.size();
        auto gathers = votes_on_gathers(plans);
        if (!gathers) return tl::unexpected(gathers.error());
        const Result<void> made = make_steps(plans, *gathers);
        if (auto all = all_succeeded(communicator_.get(), made, steps_); !all) return all;
        return make_groups();
    }

    [[nodiscard]] Index staging_bytes() const override { return staging_slots * slot_bytes_; }

    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        RunPlan plan{communicator_.get(), {}, staging_ ? staging_->bytes().data() : nullptr, nullptr};
        for (std::size_t i = 0; i < arrays_.size(); ++i) plan.arrays.push_back({&arrays_[i], buffers[i]});
        return std::make_unique<MpiBound>(std::move(plan), steps_);
    }

private:
    // Whether a gather can be MPI's own depends on each member's storage, so all ranks vote, step by step.
    Result<std::vector<char>> votes_on_gathers(const std::vector<RankPlan>& plans) {
        if (auto same = all_succeeded(communicator_.get(), {}, steps_); !same) return tl::unexpected(same.error());
        std::vector<char> votes;
        for (const RankPlan& plan : plans) {
            for (const RankStep& step : plan.steps) votes.push_back(gathers_in_place(step, plan.dtype) ? 1 : 0);
        }
        std::vector<char> all(votes.size());
        const int code = MPI_Allreduce(votes.data(), all.data(), static_cast<int>(votes.size()), MPI_SIGNED_CHAR,
                                       MPI_MIN, communicator_.get());
        if (auto done = checked(code, "MPI_Allreduce"); !done) return tl::unexpected(done.error());
        return all;
    }

    Result<void> make_steps(const std::vector<RankPlan>& plans, const std::vector<char>& gathers) {
        for (const RankPlan& plan : plans) {
            for (const RankStep& step : plan.steps) slot_bytes_ = std::max(slot_bytes_, staged_bytes(step, plan.dtype));
        }
        if (slot_bytes_ > 0) {
            auto staging = allocate_pages(staging_bytes());
            if (!staging) return tl::unexpected(staging.error());
            staging_ = std::move(*staging);
        }
        std::size_t ordinal = 0;
        for (std::size_t array = 0; array < plans.size(); ++array) {
            std::vector<WireStep>& steps = arrays_.emplace_back();
            for (const RankStep& step : plans[array].steps) {
                auto made = make_wire_step(step, plans[array].dtype, array, gathers[ordinal++] != 0, slot_bytes_);
                if (!made) return tl::unexpected(made.error());
                steps.push_back(std::move(*made));
            }
        }
        return {};
    }

    // Members meet here step by step, in the same order everywhere; groups of one step are disjoint.
    Result<void> make_groups() {
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
    Result<void> join(Collective& collective) {
        auto found = groups_.find(collective.members);
        if (found == groups_.end()) {
            auto made = communicator_of(communicator_.get(), collective.members);
            if (!made) return tl::unexpected(made.error());
            found = groups_.emplace(collective.members, std::move(*made)).first;
        }
        collective.communicator = found->second.get();
        return {};
    }

    Communicator communicator_;  // of this list alone: executors side by side cannot take each other's messages
    std::map<std::vector<Index>, Communicator> groups_;
    std::vector<std::vector<WireStep>> arrays_;
    std::size_t steps_ = 0;
    Index slot_bytes_ = 0;
    std::unique_ptr<Memory> staging_;
};

class MpiBackend final : public Base {
public:
    using Base::Base;
    [[nodiscard]] std::string_view name() const override { return "mpi"; }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        auto own = duplicate(communicator());
        if (!own) return tl::unexpected(own.error());
        auto prepared = std::make_unique<MpiPrepared>(std::move(*own));
        if (auto made = prepared->make(plans); !made) return tl::unexpected(made.error());
        return prepared;
    }
};

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator) {
    auto own = borrow(communicator);
    if (!own) return tl::unexpected(own.error());
    return std::make_unique<MpiBackend>(std::move(*own));
}

}  // namespace reshard::mpi
