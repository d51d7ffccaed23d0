#include "reshard/execute.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "placement.hpp"

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
    GuardedBound(Made made, State state) : made_(std::move(made)), state_(std::move(state)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        return guarded([this] { return made_.bound->start(); });
    }
    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        return guarded([&] { return made_.bound->start_on(queue); });
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return made_.bound->step_seconds(); }

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

Result<std::vector<RankPlan>> lower_all(std::span<const Plan> plans, const Backend& backend,
                                        std::span<const Storages> storages) {
    if (!storages.empty() && storages.size() != plans.size()) {
        return fail(Code::mismatch, fmt::format("{} plans came with {} storages", plans.size(), storages.size()));
    }
    std::vector<RankPlan> lowered;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        auto plan = lower(plans[i], backend.rank(), storages.empty() ? Storages{} : storages[i]);
        if (!plan) return tl::unexpected(plan.error());
        if (const Index devices = world_size(plans[i]); devices > backend.size()) {
            return fail(Code::mismatch, fmt::format("the plan needs {} devices, the {} backend has {} ranks", devices,
                                                    backend.name(), backend.size()));
        }
        lowered.push_back(std::move(*plan));
    }
    return lowered;
}

Index most_workspace(std::span<const RankPlan> plans) {
    Index bytes = 0;
    for (const RankPlan& plan : plans) bytes = std::max(bytes, plan.workspace_bytes);
    return bytes;
}

Index bytes_of_ends(std::span<const RankPlan> plans) {
    Index bytes = 0;
    for (const RankPlan& plan : plans) {
        bytes = saturating_add(bytes, saturating_add(plan.source_bytes, plan.target_bytes));
    }
    return bytes;
}

void run_fused(RankPlan& plan) {
    plan.steps = {*plan.fused};
    plan.workspace_bytes = 0;
}

// Without their workspaces if with them the list would not fit. What decides is the same on all ranks: full tiles.
void fuse_within(std::vector<RankPlan>& lowered, std::span<const Plan> plans, Index footprint_bytes_max) {
    Index workspace = 0;
    for (const Plan& plan : plans) {
        workspace = std::max(workspace, place_tiles(plan, target_room_bytes(plan)).workspace_bytes);
    }
    Index full = workspace;
    for (const Plan& plan : plans) {
        full = saturating_add(full, saturating_add(tile_bytes(plan.source), tile_bytes(plan.target)));
    }
    if (full <= footprint_bytes_max) return;
    for (RankPlan& plan : lowered) {
        if (plan.fused) run_fused(plan);
    }
}

// What is left for the backend's staging; an error when the caller's own buffers leave nothing.
Result<Index> staging_room(std::span<const RankPlan> plans, const PrepareOptions& options) {
    if (!options.footprint_bytes_max) return index_max;
    const Index needed = saturating_add(bytes_of_ends(plans), most_workspace(plans));
    if (needed <= *options.footprint_bytes_max) return *options.footprint_bytes_max - needed;
    return fail(Code::infeasible,
                fmt::format("needs {} bytes on this rank, limit is {} bytes", needed, *options.footprint_bytes_max));
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
    auto lowered = lower_all(plans, backend, storages);
    if (lowered && options.footprint_bytes_max) fuse_within(*lowered, plans, *options.footprint_bytes_max);
    Result<Index> room = lowered ? staging_room(*lowered, options) : tl::unexpected(lowered.error());
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    const auto agreed = backend.agree(room ? fingerprint_of(plans) : 0);
    if (!room) return tl::unexpected(room.error());
    if (!agreed) return tl::unexpected(agreed.error());
    Executor executor;
    executor.plans_ = *lowered;
    auto prepared = options.footprint_bytes_max ? backend.prepare_within(std::move(*lowered), *room)
                                                : backend.prepare(std::move(*lowered));
    if (!prepared) return tl::unexpected(prepared.error());
    executor.prepared_ = std::move(*prepared);
    for (std::size_t i = 0; i < executor.plans_.size(); ++i) {
        if (executor.prepared_->fuses(i)) run_fused(executor.plans_[i]);
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
    auto bound = prepared_->bind(buffers);
    if (!bound) return bound;
    return std::make_unique<GuardedBound>(Made{prepared_, std::move(*bound)}, state_);
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
