#include "backends/mpi/shm/shm_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "backends/mpi/base/agree.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// How a box gets from the memory of one rank into another's: the sender pushes, the receiver pulls, or both bounce.
enum class Way { push, pull, bounce };

// Both sides choose the same way. Past the caches, each source is read once, in its order, and pushed to all ranks that
// want a part of it. Within the caches, each target is written by the core that will read it. A core that pushes would
// first have to take the lines of the target away from that core.
Way way_of(bool source_is_shared, bool target_is_shared, Store store) {
    if (source_is_shared && target_is_shared) return store == Store::streaming ? Way::push : Way::pull;
    if (source_is_shared) return Way::pull;
    return target_is_shared ? Way::push : Way::bounce;
}

}  // namespace

Result<std::unique_ptr<ShmCopyPlan>> ShmCopyPlan::make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                       std::span<const ArrayStep> steps, const Options& options) {
    std::unique_ptr<ShmCopyPlan> plan(new ShmCopyPlan);
    plan->arena_ = std::move(arena);
    RESHARD_TRY(auto& parts, all_succeeded(communicator, exchange_parts(communicator, steps), steps.size()));
    RESHARD_ASSIGN(plan->signals_,
                   Signals::make(communicator, plan->arena_, signal_addresses(steps.size()), options.timeout));
    plan->arrays_.resize(steps.size());
    plan->moves_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step == nullptr) continue;
        const RankStep& step = *steps[i].step;
        const ElementCast cast = cast_of(step.from_dtype, step.to_dtype);
        plan->casts_ = plan->casts_ || cast;
        plan->moves_[i] = 1;
        plan->arrays_[i] = {true, step.step, MultiCopy(MultiCopy::Kind::push, cast),
                            MultiCopy(MultiCopy::Kind::pull, cast)};
    }
    std::set<std::size_t> partners;
    for (const PeerRegion& part : parts.own) plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
    for (const PeerRegion& part : parts.sends) {
        plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (const PeerRegion& part : parts.receives) {
        plan->arrays_[part.array].pull.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (Array& array : plan->arrays_) {
        array.push.arrange();
        array.pull.arrange();
    }
    plan->partners_.assign(partners.begin(), partners.end());
    RESHARD_CHECK(
        plan->bounce_buffers_.make(communicator, *plan->signals_, *plan->arena_, parts, options.bounce_bytes));
    RESHARD_CHECK(plan->choose(communicator, parts, options.unregistered_buffers));
    plan->reached_ = std::move(parts);
    return plan;
}

// Non-temporal stores win if the ranks of the node write more than the cache that they share can hold. Going through
// the bounce buffers at once wins if a second copy is cheaper than a barrier.
Result<void> ShmCopyPlan::choose(MPI_Comm communicator, const PeerRegions& parts,
                                 UnregisteredBuffers unregistered_buffers) {
    Index written = 0;
    for (const auto* some : {&parts.own, &parts.receives}) {
        for (const PeerRegion& part : *some) written += bytes_of(part.target);
    }
    RESHARD_TRY(const auto& all, reduced(communicator, std::array<Index, 1>{written}, MPI_INT64_T, MPI_SUM));
    const bool small = written <= signals_->barrier_bytes();
    RESHARD_TRY(const auto& at_once,
                least(communicator, {static_cast<char>(small && bounce_buffers_.hold_all() ? 1 : 0)}));
    store_ = store_for(all.front());
    at_once_ = at_once.front() != 0;
    bounce_store_ = store_;
    if (unregistered_buffers == UnregisteredBuffers::bounce) bounce_store_ = Store::cached;
    if (unregistered_buffers == UnregisteredBuffers::bounce_nontemporal) bounce_store_ = Store::streaming;
    return {};
}

std::string ShmCopyPlan::describe() const {
    const char* cast = casts_ ? ", and the cast is part of the copy" : "";
    if (at_once_) return fmt::format("through bounce buffers of {} bytes at once{}", bounce_bytes(), cast);
    return fmt::format("one pass through shared memory ({}; bounce buffers of {} bytes{} for unregistered buffers){}",
                       store_ == Store::streaming ? "push, non-temporal stores" : "pull, cached stores", bounce_bytes(),
                       bounce_store_ == Store::streaming ? ", non-temporal stores," : "", cast);
}

ShmCopy::ShmCopy(ShmCopyPlan& plan, const ShmAddresses& buffers)
    : ShmRun(*plan.signals_, buffers, ++plan.runs_, plan.at_once_ ? Ranks() : plan.partners_), plan_(plan) {}

Result<bool> ShmCopy::next(Slice most) {
    switch (phase_) {
        case Phase::entering: {
            RESHARD_CHECK(buffers_.kept(*plan_.arena_));
            if (plan_.at_once_) {
                stage_all();
                return true;
            }
            const auto there = wait(&SignalLine::entered, run_, plan_.partners_, most);
            if (!there || !*there) return there;
            RESHARD_CHECK(signals_.touch([&] { return sweep(); }));
            phase_ = Phase::staging;
            return true;
        }
        case Phase::staging: {
            if (plan_.bounce_buffers_.advance(signals_, buffers_.sources, buffers_.targets, plan_.store_))
                waiting_.moved();
            if (!plan_.bounce_buffers_.wanted().empty())
                return waiting_.on(plan_.bounce_buffers_.wanted(), Signals::Need::any, most);
            store_fence();
            say(&SignalLine::done, run_, leaving_);
            phase_ = Phase::leaving;
            return true;
        }
        case Phase::leaving: {
            const auto done = wait(&SignalLine::done, run_, leaving_, most);
            if (done && *done) {
                for (const auto& [array, peer] : written_) bring_back(array, peer);
                end();
            }
            return done;
        }
    }
    return true;
}

Result<void> ShmCopy::resolve() {
    const std::size_t ranks = signals_.size();
    const std::size_t arrays = plan_.arrays_.size();
    targets_.assign(arrays, std::vector<std::byte*>(ranks, nullptr));
    sources_.assign(arrays, std::vector<const std::byte*>(ranks, nullptr));
    std::vector<std::vector<char>> to_stage(ranks, std::vector<char>(arrays));
    std::vector<std::vector<char>> from_stage = to_stage;
    std::vector<bool> direct(ranks);  // one of the two ranks reads or writes the other's buffers
    for (std::size_t array = 0; array < arrays; ++array) {
        if (!plan_.arrays_[array].moves) continue;
        targets_[array][signals_.rank()] = buffers_.targets[array];
        const bool own_source = is_shared(buffers_.addresses[2 * array]);
        const bool own_target = is_shared(buffers_.addresses[2 * array + 1]);
        for (const std::size_t peer : plan_.partners_) {
            const Address& source = published(peer, 2 * array);
            const Address& target = published(peer, 2 * array + 1);
            const Way out = way_of(own_source, is_shared(target), plan_.store_);
            const Way in = way_of(is_shared(source), own_target, plan_.store_);
            if (in == Way::push && !buffers_.written_by_peers.empty()) written_.emplace_back(array, peer);
            if (out == Way::push) {
                RESHARD_ASSIGN(targets_[array][peer],
                               reach(*plan_.arena_, peer, 2 * array + 1, plan_.arrays_[array].step));
            }
            if (in == Way::pull) {
                RESHARD_ASSIGN(sources_[array][peer], reach(*plan_.arena_, peer, 2 * array, plan_.arrays_[array].step));
            }
            to_stage[peer][array] = out == Way::bounce ? 1 : 0;
            from_stage[peer][array] = in == Way::bounce ? 1 : 0;
            direct[peer] = direct[peer] || out != Way::bounce || in != Way::bounce;
        }
    }
    std::vector<char> own(arrays);
    for (std::size_t array = 0; array < arrays; ++array) {
        own[array] = std::ranges::any_of(to_stage, [&](const auto& staged) { return staged[array] != 0; }) ? 1 : 0;
        if (own[array] != 0) targets_[array][signals_.rank()] = nullptr;  // the bounce buffers copy it on the way
    }
    plan_.bounce_buffers_.restart(to_stage, from_stage, own, plan_.bounce_store_);
    for (const std::size_t peer : plan_.partners_) {
        if (direct[peer]) leaving_.push_back(peer);
    }
    return {};
}

Result<void> ShmCopy::pack_first() {
    if (!plan_.at_once_) return {};
    RESHARD_CHECK(buffers_.kept(*plan_.arena_));
    stage_all();
    plan_.bounce_buffers_.pack(signals_, buffers_.sources);
    return {};
}

// No peer reaches the buffers, so no peer has to be ready yet.
void ShmCopy::stage_all() {
    phase_ = Phase::staging;
    plan_.bounce_buffers_.restart(plan_.moves_, plan_.bounce_store_);
}

Result<void> ShmCopy::sweep() {
    RESHARD_CHECK(resolve());
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array) {
        ShmCopyPlan::Array& moved = plan_.arrays_[array];
        if (!moved.moves) continue;
        moved.push.push(buffers_.sources[array], targets_[array], plan_.store_);
        const bool pulls =
            std::ranges::any_of(sources_[array], [](const std::byte* source) { return source != nullptr; });
        if (pulls) moved.pull.pull(buffers_.targets[array], sources_[array], plan_.store_);
    }
    return {};
}

}  // namespace reshard::mpi
