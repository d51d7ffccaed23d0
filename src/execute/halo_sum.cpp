// Sums of halos on a backend: prepare, bind and run.
#include "reshard/halo/sum.hpp"

#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/execute/bucket_run.hpp"
#include "src/execute/lower_sum.hpp"
#include "src/execute/memory_ranges.hpp"

namespace reshard {

/// A sum shares this state with its bound buffers and runs.
struct HaloSum::State {
    // One array: its parts of the workspace, and what is added from there.
    struct Array {
        LoweredSum lowered;
        Index place = 0;  // of its workspace, in bytes from the start
        DType dtype = DType::f32;
    };
    std::vector<Array> arrays;
    std::unique_ptr<Memory> workspace;  // none if no rank receives anything for this one
    Index workspace_bytes = 0;
    std::shared_ptr<Prepared> prepared;  // none if no rank receives anything
    std::shared_ptr<Executor::RunState> runs = std::make_shared<Executor::RunState>();
    bool in_flight = false;  // until the additions are done

    [[nodiscard]] std::byte* workspace_of(const Array& array) const {
        return workspace ? workspace->bytes().data() + array.place : nullptr;
    }
};

namespace {

std::uint64_t fingerprint(std::span<const HaloLayout> layouts) {
    Hash hash;
    for (const HaloLayout& layout : layouts)
        hash.add("sum of " + format(layout.owned.mesh) + " " + format(layout) + ";");
    return hash.value();
}

// A run that adds up once the cells of other ranks are there.
class SumTicket final : public Ticket {
public:
    SumTicket(std::unique_ptr<Ticket> exchange, std::function<void()> add_up, std::function<void()> end)
        : exchange_(std::move(exchange)), add_up_(std::move(add_up)), end_(std::move(end)) {}
    ~SumTicket() override { static_cast<void>(finish(exchange_->wait())); }
    SumTicket(const SumTicket&) = delete;
    SumTicket& operator=(const SumTicket&) = delete;

    Result<bool> test() override { return after(exchange_->test()); }
    Result<bool> wait_for(Index microseconds) override { return after(exchange_->wait_for(microseconds)); }
    Result<void> wait() override { return finish(exchange_->wait()); }

private:
    Result<bool> after(Result<bool> there) {
        if (there && !*there) return there;
        RESHARD_CHECK(finish(there.map([](bool) {})));
        return true;
    }
    Result<void> finish(Result<void> there) {
        if (there && !ended_) add_up_();
        if (!std::exchange(ended_, true)) end_();
        return there;
    }

    std::unique_ptr<Ticket> exchange_;
    std::function<void()> add_up_;
    std::function<void()> end_;
    bool ended_ = false;
};

// `State` is HaloSum's own.
template <class State>
class SumBound final : public Bound {
public:
    SumBound(std::unique_ptr<Bound> exchange, std::shared_ptr<State> state, std::vector<std::byte*> arrays)
        : exchange_(std::move(exchange)), state_(std::move(state)), arrays_(std::move(arrays)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        if (state_->in_flight) return fail(Code::mismatch, "another run of this sum is still in flight");
        RESHARD_TRY(auto& exchange, exchange_->start());
        state_->in_flight = true;
        const auto add_up = [state = state_, arrays = arrays_] {
            for (std::size_t i = 0; i < arrays.size(); ++i)
                for (const LoweredSum::Addition& one : state->arrays[i].lowered.additions)
                    one.combine.run(one.own ? arrays[i] : state->workspace_of(state->arrays[i]), arrays[i]);
        };
        return std::make_unique<SumTicket>(std::move(exchange), add_up, [state = state_] { state->in_flight = false; });
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return exchange_->step_seconds(); }

private:
    std::unique_ptr<Bound> exchange_;
    std::shared_ptr<State> state_;
    std::vector<std::byte*> arrays_;
};

}  // namespace

Result<HaloSum> HaloSum::prepare(std::span<const HaloLayout> layouts, Backend& backend,
                                 std::span<const std::optional<Storage>> arrays) {
    HaloSum made;
    made.state_ = std::make_shared<State>();
    State& state = *made.state_;
    const auto lower = [&]() -> Result<void> {
        if (backend.on_device())
            return fail(Code::unsupported, "halos are summed in host memory only; this backend has memory on a device");
        if (!arrays.empty() && arrays.size() != layouts.size())
            return fail(Code::mismatch, fmt::format("{} arrays were given {} storages", layouts.size(), arrays.size()));
        for (std::size_t i = 0; i < layouts.size(); ++i) {
            RESHARD_TRY(auto& one, lower_sum(layouts[i], backend.rank(), arrays.empty() ? std::nullopt : arrays[i]));
            const Index ranks = world_size(layouts[i].owned.mesh);
            if (ranks > backend.size())
                return fail(Code::mismatch, fmt::format("the layout of array {} has devices up to {}, the backend has "
                                                        "{} ranks",
                                                        i, ranks - 1, backend.size()));
            const Index place = ceil_divide(state.workspace_bytes, line_bytes) * line_bytes;
            state.workspace_bytes = saturating_add(place, one.workspace_bytes);
            if (state.workspace_bytes > index_max - line_bytes)
                return fail(Code::overflow, "the halos of all arrays have more bytes than 64 bits can count");
            state.arrays.push_back({std::move(one), place, layouts[i].owned.dtype});
        }
        if (state.workspace_bytes == 0) return {};
        RESHARD_ASSIGN(state.workspace, backend.allocate(state.workspace_bytes));
        return {};
    };
    // A rank that failed still takes part, so that the others are told instead of waiting for it.
    RESHARD_CHECK(backend.agree(lower().map([&] { return fingerprint(layouts); })));
    std::vector<RankPlan> plans;
    for (const State::Array& array : state.arrays)
        plans.insert(plans.end(), array.lowered.plans.begin(), array.lowered.plans.end());
    if (plans.empty()) return made;
    RESHARD_ASSIGN(state.prepared, backend.prepare(std::move(plans)));
    state.runs->prepared.push_back(state.prepared);
    return made;
}

Result<HaloSum> HaloSum::prepare(const HaloLayout& layout, Backend& backend, const std::optional<Storage>& array) {
    return prepare(std::span(&layout, 1), backend, std::span(&array, 1));
}

std::size_t HaloSum::array_count() const { return state_->arrays.size(); }

Index HaloSum::received_bytes() const {
    Index bytes = 0;
    for (const State::Array& array : state_->arrays) bytes += array.lowered.received_bytes;
    return bytes;
}

Index HaloSum::workspace_bytes() const { return state_->workspace_bytes; }

Index HaloSum::staging_bytes() const { return state_->prepared ? state_->prepared->staging_bytes() : 0; }

std::string HaloSum::describe() const { return state_->prepared ? state_->prepared->describe() : std::string(); }

void HaloSum::report_failure(const Error& why) {
    if (!state_->prepared || state_->runs->in_flight || state_->runs->failed) return;
    state_->prepared->report_failure(why);
}

Result<std::unique_ptr<Bound>> HaloSum::bind(std::span<const Buffers> buffers) {
    auto bound = try_bind(buffers);
    if (!bound && state_->prepared) state_->prepared->report_failure(named("bind failed", bound.error()));
    return bound;
}

Result<std::unique_ptr<Bound>> HaloSum::try_bind(std::span<const Buffers> buffers) const {
    const std::vector<State::Array>& arrays = state_->arrays;
    if (buffers.size() != arrays.size())
        return fail(Code::mismatch,
                    fmt::format("{} arrays were given {} sets of buffers", arrays.size(), buffers.size()));
    std::vector<MemoryRange> ranges;
    std::vector<std::byte*> memory;
    std::vector<Buffers> of_plans;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        const LoweredSum& lowered = arrays[i].lowered;
        const std::span<std::byte> array = buffers[i].target;
        RESHARD_CHECK(add_range(ranges, array, lowered.array_bytes, {{}, fmt::format("array {}", i), true}));
        memory.push_back(array.data());
        for (std::size_t k = 0; k < lowered.plans.size(); ++k) {
            const auto size = static_cast<std::size_t>(lowered.plans[k].target_bytes);
            std::span<std::byte> cells;
            if (size > 0) cells = {state_->workspace_of(arrays[i]) + lowered.places[k], size};
            of_plans.push_back({array, cells, {}});
        }
    }
    RESHARD_CHECK(check_apart(ranges));
    BoundBuckets all;
    if (state_->prepared) {
        RESHARD_TRY(auto& bound, state_->prepared->bind(of_plans));
        all.steps.emplace_back(of_plans.size());
        std::iota(all.steps.back().begin(), all.steps.back().end(), std::size_t{0});
        all.prepared.push_back(state_->prepared);
        all.bounds.push_back(std::move(bound));
    }
    return std::make_unique<SumBound<State>>(guarded(std::move(all), state_->runs), state_, std::move(memory));
}

Result<void> HaloSum::run(Elements array) {
    if (array.dtype && !state_->arrays.empty() && *array.dtype != state_->arrays.front().dtype)
        return fail(Code::mismatch, fmt::format("elements of {} were given for an array of {}", name(*array.dtype),
                                                name(state_->arrays.front().dtype)));
    const Buffers buffers{{}, array.bytes, {}};
    RESHARD_TRY(auto& bound, bind(std::span(&buffers, 1)));
    RESHARD_TRY(auto& ticket, bound->start());
    return ticket->wait();
}

}  // namespace reshard
