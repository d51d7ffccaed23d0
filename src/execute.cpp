#include "reshard/execute.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "lower_list.hpp"

namespace reshard {

// What the runs of one executor share. A failed run leaves peers in the middle of a step; nothing starts after it.
struct Executor::RunState {
    bool in_flight = false;
    bool failed = false;
    Error first_error = {};
};

namespace {

using State = std::shared_ptr<Executor::RunState>;

// What a backend made for a run, the outer first. A run keeps both alive: callers may drop them while it is in flight.
struct Made {
    std::shared_ptr<Prepared> prepared;
    std::shared_ptr<Bound> bound;
};

class GuardedTicket final : public Ticket {
public:
    GuardedTicket(Made made, std::unique_ptr<Ticket> run, State state)
        : made_(std::move(made)), run_(std::move(run)), state_(std::move(state)) {}
    ~GuardedTicket() override {
        if (run_) static_cast<void>(wait());  // a run that is dropped has nobody to tell; the state remembers
    }
    GuardedTicket(const GuardedTicket&) = delete;
    GuardedTicket& operator=(const GuardedTicket&) = delete;

    Result<bool> test() override {
        if (!run_) return ended().transform([] { return true; });
        const auto done = run_->test();
        if (!done) note_failure(done.error());
        if (!done || *done) finish();
        return done;
    }
    Result<void> wait() override {
        if (!run_) return ended();
        const auto done = run_->wait();
        if (!done) note_failure(done.error());
        finish();
        return done;
    }

private:
    void note_failure(const Error& error) {
        failed_ = true;
        state_->failed = true;
        state_->first_error = error;
    }
    void finish() {
        run_.reset();
        state_->in_flight = false;
    }
    [[nodiscard]] Result<void> ended() const {
        if (failed_) return tl::unexpected(state_->first_error);
        return {};
    }

    Made made_;
    std::unique_ptr<Ticket> run_;
    State state_;
    bool failed_ = false;
};

class GuardedBound final : public Bound {
public:
    /// `steps`: of each piece, the place of its first step among those of the whole list.
    GuardedBound(Made made, State state, std::vector<std::size_t> steps)
        : made_(std::move(made)), state_(std::move(state)), steps_(std::move(steps)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        return guarded([this] { return made_.bound->start(); });
    }
    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        return guarded([&] { return made_.bound->start_on(queue); });
    }
    // Of all pieces of an array together.
    [[nodiscard]] std::vector<double> step_seconds() const override {
        const std::vector<double> of_pieces = made_.bound->step_seconds();
        std::vector<double> seconds;
        for (std::size_t i = 0; i < of_pieces.size() && i < steps_.size(); ++i) {
            if (seconds.size() <= steps_[i]) seconds.resize(steps_[i] + 1, 0.0);
            seconds[steps_[i]] += of_pieces[i];
        }
        return seconds;
    }

private:
    template <class Start>
    Result<std::unique_ptr<Ticket>> guarded(const Start& start) {
        if (state_->failed) {
            return fail(Code::backend, fmt::format("an earlier run of this executor failed, prepare it anew: {}",
                                                   state_->first_error.message));
        }
        if (state_->in_flight) return fail(Code::mismatch, "another run of this executor is still in flight");
        auto run = start();
        if (!run && run.error().code == Code::unsupported) return run;  // nothing was started
        if (!run) {
            state_->failed = true;
            state_->first_error = run.error();
            return run;
        }
        state_->in_flight = true;
        return std::make_unique<GuardedTicket>(made_, std::move(*run), state_);
    }
    Made made_;
    State state_;
    std::vector<std::size_t> steps_;
};

// One buffer that a run touches, for the overlap check.
struct Range {
    const std::byte* begin;
    const std::byte* end;
    Place place;
    std::size_t array;
};

std::string_view place_name(Place place) {
    switch (place) {
        case Place::source:
            return "source";
        case Place::target:
            return "target";
        case Place::workspace:
            break;
    }
    return "workspace";
}

// Sources are only read, and workspaces are shared by arrays that run one after another; all else must be apart.
bool may_overlap(const Range& a, const Range& b) { return a.place == b.place && a.place != Place::target; }

Result<void> require_apart(const std::vector<Range>& ranges) {
    const std::less<const std::byte*> before;  // ordered even between unrelated allocations
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        for (std::size_t j = i + 1; j < ranges.size(); ++j) {
            const Range& a = ranges[i];
            const Range& b = ranges[j];
            if (may_overlap(a, b) || !before(a.begin, b.end) || !before(b.begin, a.end)) continue;
            return fail(Code::mismatch, fmt::format("the {} of array {} and the {} of array {} overlap in memory",
                                                    place_name(a.place), a.array, place_name(b.place), b.array));
        }
    }
    return {};
}

Result<void> add_range(std::vector<Range>& ranges, std::span<const std::byte> bytes, Index needed, Place place,
                       std::size_t array) {
    if (static_cast<std::uint64_t>(needed) > bytes.size()) {
        return fail(Code::mismatch, fmt::format("the {} of array {} needs {} bytes, the buffer has {}",
                                                place_name(place), array, needed, bytes.size()));
    }
    // Only what a run may touch counts: a buffer may be larger than the tile in it.
    if (needed > 0) ranges.push_back({bytes.data(), bytes.data() + needed, place, array});
    return {};
}

// Order matters; never 0, which stands for a rank that failed.
std::uint64_t fingerprint_of(std::span<const Plan> plans) {
    std::uint64_t all = plans.size() + 1;
    for (const Plan& plan : plans) all = (all ^ fingerprint(plan)) * 0x9e3779b97f4a7c15u + (all >> 29);
    return all == 0 ? 1 : all;
}

}  // namespace

Result<Executor> Executor::prepare(std::span<const Plan> plans, Backend& backend, std::span<const Storages> storages,
                                   const PrepareOptions& options) {
    auto lowered = lower_list(plans, backend, storages, options);
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    const auto agreed = backend.agree(lowered ? fingerprint_of(plans) : 0);
    if (!lowered) return tl::unexpected(lowered.error());
    if (!agreed) return tl::unexpected(agreed.error());
    Executor executor;
    executor.plans_ = std::move(lowered->arrays);
    executor.array_of_ = std::move(lowered->array_of);
    auto prepared = options.footprint_bytes_max
                        ? backend.prepare_within(std::move(lowered->pieces), lowered->staging_room)
                        : backend.prepare(std::move(lowered->pieces));
    if (!prepared) return tl::unexpected(prepared.error());
    executor.prepared_ = std::move(*prepared);
    for (std::size_t i = 0; i < executor.array_of_.size(); ++i) {
        if (executor.prepared_->fuses(i)) run_fused(executor.plans_[executor.array_of_[i]]);
    }
    executor.state_ = std::make_shared<RunState>();
    return executor;
}

Result<Executor> Executor::prepare(const Plan& plan, Backend& backend, const Storages& storages,
                                   const PrepareOptions& options) {
    return prepare(std::span(&plan, 1), backend, std::span(&storages, 1), options);
}

Index Executor::workspace_bytes() const { return most_workspace(plans_); }

Index Executor::footprint_bytes() const {
    return saturating_add(bytes_of_ends(plans_), saturating_add(workspace_bytes(), staging_bytes()));
}

Result<std::unique_ptr<Bound>> Executor::bind(std::span<const Buffers> buffers) {
    if (buffers.size() != plans_.size()) {
        return fail(Code::mismatch,
                    fmt::format("{} arrays were given {} sets of buffers", plans_.size(), buffers.size()));
    }
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
        const RankPlan& plan = plans_[i];
        for (auto added : {add_range(ranges, buffers[i].source, plan.source_bytes, Place::source, i),
                           add_range(ranges, buffers[i].target, plan.target_bytes, Place::target, i),
                           add_range(ranges, buffers[i].workspace, plan.workspace_bytes, Place::workspace, i)}) {
            if (!added) return tl::unexpected(added.error());
        }
    }
    if (auto apart = require_apart(ranges); !apart) return tl::unexpected(apart.error());
    // All pieces of an array lie in its buffers and share its workspace, one after another.
    std::vector<Buffers> of_pieces;
    std::vector<std::size_t> first_step = {0};
    for (const RankPlan& plan : plans_) first_step.push_back(first_step.back() + plan.steps.size());
    std::vector<std::size_t> steps;
    for (const std::size_t array : array_of_) {
        of_pieces.push_back(buffers[array]);
        for (std::size_t at = first_step[array]; at < first_step[array + 1]; ++at) steps.push_back(at);
    }
    auto bound = prepared_->bind(of_pieces);
    if (!bound) return bound;
    return std::make_unique<GuardedBound>(Made{prepared_, std::move(*bound)}, state_, std::move(steps));
}

Result<void> Executor::run(std::span<const std::byte> source, std::span<std::byte> target,
                           std::span<std::byte> workspace) {
    const Buffers buffers{source, target, workspace};
    auto bound = bind(std::span(&buffers, 1));
    if (!bound) return tl::unexpected(bound.error());
    auto ticket = (*bound)->start();
    if (!ticket) return tl::unexpected(ticket.error());
    return (*ticket)->wait();
}

}  // namespace reshard
