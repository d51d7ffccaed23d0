#include "backends/mpi/shm/shm_copy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "backends/mpi/base/agree.hpp"

namespace reshard::mpi {
namespace {

constexpr std::array tried_ways{UnregisteredBuffers::bounce, UnregisteredBuffers::bounce_nontemporal,
                                UnregisteredBuffers::mpi_datatypes};

UnregisteredBuffers without_datatypes(UnregisteredBuffers wanted) {
    return wanted == UnregisteredBuffers::bounce_nontemporal ? wanted : UnregisteredBuffers::bounce;
}

// How a box gets from the memory of one rank into that of another. What one of them does, the other leaves.
enum class Way { push, pull, window };

// The same on both sides. Past the caches a source is read once, in its order, and pushed to all who want of it. Within
// them a target is written where it will be read: a core that pushes would first have to take its lines away.
Way way_of(bool source_is_shared, bool target_is_shared, Store store) {
    if (source_is_shared && target_is_shared) return store == Store::streaming ? Way::push : Way::pull;
    if (source_is_shared) return Way::pull;
    return target_is_shared ? Way::push : Way::window;
}

}  // namespace

Result<std::unique_ptr<ShmCopyPlan>> ShmCopyPlan::make(MPI_Comm communicator, std::shared_ptr<Arena> arena,
                                                       std::span<const ArrayStep> steps, const BackendOptions& options,
                                                       bool may_leave) {
    std::unique_ptr<ShmCopyPlan> plan(new ShmCopyPlan);
    plan->arena_ = std::move(arena);
    auto parts = exchange_parts(communicator, steps);
    const Result<void> met = parts.map([](const PeerRegions&) {});
    if (auto all = all_succeeded(communicator, met, steps.size()); !all) return tl::unexpected(all.error());
    auto signals = Signals::make(communicator, plan->arena_, board_addresses(steps.size()), options.timeout);
    if (!signals) return tl::unexpected(signals.error());
    plan->signals_ = std::move(*signals);
    plan->arrays_.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        plan->arrays_[i].moves = steps[i].step != nullptr;
        if (steps[i].step != nullptr) plan->arrays_[i].step = steps[i].step->step;
    }
    std::set<std::size_t> partners;
    for (const PeerRegion& part : parts->own) plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
    for (const PeerRegion& part : parts->sends) {
        plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (const PeerRegion& part : parts->receives) {
        plan->arrays_[part.array].pull.add(part.peer, part.source, part.target);
        partners.insert(part.peer);
    }
    for (Array& array : plan->arrays_) {
        array.push.arrange();
        array.pull.arrange();
    }
    plan->partners_.assign(partners.begin(), partners.end());
    if (auto made = plan->windows_.make(communicator, plan->arena_, *parts, options.window_bytes); !made) {
        return tl::unexpected(made.error());
    }
    if (auto chosen =
            plan->choose(communicator, *parts,
                         may_leave ? options.unregistered_buffers : without_datatypes(options.unregistered_buffers));
        !chosen)
        return tl::unexpected(chosen.error());
    return plan;
}

// Streaming stores win where what all ranks of the node write does not fit the cache that they share. Through the
// windows at once wins where a second copy is cheaper than a meeting.
Result<void> ShmCopyPlan::choose(MPI_Comm communicator, const PeerRegions& parts,
                                 UnregisteredBuffers unregistered_buffers) {
    Index written = 0;
    for (const auto* some : {&parts.own, &parts.receives}) {
        for (const PeerRegion& part : *some) written += bytes_of(part.target);
    }
    Index all = 0;
    int code = MPI_Allreduce(&written, &all, 1, MPI_INT64_T, MPI_SUM, communicator);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return done;
    const bool small = written <= signals_->bytes_of_meeting();
    std::array<int, 2> chosen = {all > last_cache_bytes() / 2 ? 1 : 0, small && windows_.hold_all() ? 0 : 1};
    code = MPI_Allreduce(MPI_IN_PLACE, chosen.data(), 2, MPI_INT, MPI_MAX, communicator);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return done;
    store_ = chosen[0] != 0 ? Store::streaming : Store::cached;
    at_once_ = chosen[1] == 0 && unregistered_buffers != UnregisteredBuffers::mpi_datatypes;
    const bool tries = unregistered_buffers == UnregisteredBuffers::fastest && store_ == Store::streaming;
    if (tries) choice_.emplace(static_cast<std::size_t>(std::size(tried_ways)));
    if (unregistered_buffers != UnregisteredBuffers::fastest) fixed_ = unregistered_buffers;
    met_ = partners_;
    if (!may_leave()) return {};
    met_.resize(signals_->size());
    std::iota(met_.begin(), met_.end(), std::size_t{0});
    std::erase(met_, signals_->rank());
    return {};
}

std::string ShmCopyPlan::describe() const {
    if (at_once_) return fmt::format("through shared windows of {} bytes at once", window_bytes());
    return fmt::format("one sweep through shared memory ({}; {})",
                       store_ == Store::streaming ? "push, streaming stores" : "pull, cached stores", describe_other());
}

std::string ShmCopyPlan::describe_other() const {
    const auto in_words = [&](UnregisteredBuffers way) {
        if (way == UnregisteredBuffers::mpi_datatypes) return std::string("MPI's datatypes for other memory");
        return fmt::format("windows of {} bytes{} for other memory", window_bytes(),
                           way == UnregisteredBuffers::bounce_nontemporal ? ", streaming stores," : "");
    };
    if (!choice_) return in_words(fixed_);
    if (!choice_->settled()) return in_words(UnregisteredBuffers::bounce) + ", or what is found to be faster";
    std::vector<std::string> each;
    for (const double seconds : choice_->seconds()) each.push_back(fmt::format("{:.3g}", seconds * 1e3));
    return fmt::format("{}, the fastest of windows, streamed windows and datatypes: {} ms",
                       in_words(tried_ways[choice_->kept()]), fmt::join(each, ", "));
}

ShmCopy::ShmCopy(ShmCopyPlan& plan, const ShmAddresses& buffers)
    : plan_(plan), buffers_(buffers), run_(++plan.runs_), waiting_(*plan.signals_) {
    for (const Buffers& own : buffers_.buffers) {
        own_sources_.push_back(own.source.data());
        own_targets_.push_back(own.target.data());
    }
    Signals& signals = *plan_.signals_;
    for (std::size_t i = 0; i < buffers_.addresses.size(); ++i) published(signals.rank(), i) = buffers_.addresses[i];
    signals.line(signals.rank()).seconds[run_ % 2] = std::exchange(plan_.last_seconds_, 0);
    signals.line(signals.rank()).entered.store(run_, std::memory_order_release);
    if (plan_.at_once_) return;
    for (const std::size_t peer : plan_.met_) signals.tell(peer);
}

// A rank may begin its next run while a peer, to which it only sent through a window, still reads what it published for
// this one; it cannot begin the one after that.
Address& ShmCopy::published(std::size_t rank, std::size_t index) const {
    return plan_.signals_->address(rank, (run_ % 2) * buffers_.addresses.size() + index);
}

Result<bool> ShmCopy::advance(Slice most) {
    while (phase_ != Phase::over) {
        auto moved = next(most);
        if (!moved) {
            plan_.signals_->fail_all(moved.error());
            phase_ = Phase::over;
            return moved;
        }
        if (!*moved) return false;
    }
    return true;
}

// One phase. False when it waits for a peer.
Result<bool> ShmCopy::next(Slice most) {
    Signals& signals = *plan_.signals_;
    switch (phase_) {
        case Phase::entering: {
            if (auto kept = buffers_.kept(*plan_.arena_); !kept) return tl::unexpected(kept.error());
            if (plan_.at_once_) {
                stage_all();
                phase_ = Phase::staging;
                return true;
            }
            Signals::Wanteds entered;
            for (const std::size_t peer : plan_.met_) entered.push_back({peer, &signals.line(peer).entered, run_});
            auto there = waiting_.on(entered, Signals::Need::all, most);
            if (!there || !*there) return there;
            met_at_ = Signals::Clock::now();
            choose();
            if (leaves_to_messages()) {
                phase_ = Phase::over;
                return true;
            }
            if (auto done = resolve(); !done) return tl::unexpected(done.error());
            sweep();
            phase_ = Phase::staging;
            return true;
        }
        case Phase::staging: {
            if (plan_.windows_.advance(signals, own_sources_, own_targets_, plan_.store_)) waiting_.moved();
            if (!plan_.windows_.wanted().empty()) return waiting_.on(plan_.windows_.wanted(), Signals::Need::any, most);
            store_fence();
            signals.line(signals.rank()).done.store(run_, std::memory_order_release);
            for (const Signals::Wanted& peer : leaving_) signals.tell(peer.rank);
            phase_ = Phase::leaving;
            return true;
        }
        case Phase::leaving: {
            auto done = waiting_.on(leaving_, Signals::Need::all, most);
            if (!done || !*done) return done;
            if (timed_) plan_.took(std::chrono::duration<double>(Signals::Clock::now() - met_at_).count());
            phase_ = Phase::over;
            return true;
        }
        case Phase::over:
            break;
    }
    return true;
}

bool ShmCopy::all_is_other_memory() const {
    for (std::size_t rank = 0; rank < plan_.signals_->size(); ++rank) {
        for (std::size_t i = 0; i < buffers_.addresses.size(); ++i) {
            if (is_shared(published(rank, i))) return false;
        }
    }
    return true;
}

// By what all ranks have published, and so alike on all: the slowest of them is how long a run took.
void ShmCopy::choose() {
    unregistered_buffers_ = plan_.fixed_;
    if (!plan_.may_leave()) return;
    timed_ = all_is_other_memory();
    if (!timed_) unregistered_buffers_ = UnregisteredBuffers::bounce;
    if (!plan_.choice_) return;
    double slowest = 0;
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t rank = 0; rank < plan_.signals_->size(); ++rank) {
        const double seconds = plan_.signals_->line(rank).seconds[run_ % 2];
        slowest = std::max(slowest, seconds);
        fastest = std::min(fastest, seconds);
    }
    if (fastest > 0) plan_.choice_->ran(slowest);
    if (timed_) unregistered_buffers_ = tried_ways[plan_.choice_->way()];
}

Result<std::byte*> ShmCopy::reach(const Address& address, std::size_t array, std::size_t peer) {
    auto reached = plan_.arena_->reach(address, views_);
    if (reached) return reached;
    return fail(Code::backend, fmt::format("array {}, step {}: reaching the memory of rank {}: {}", array,
                                           plan_.arrays_[array].step + 1, peer, reached.error().message));
}

Result<void> ShmCopy::resolve() {
    Signals& signals = *plan_.signals_;
    const std::size_t arrays = plan_.arrays_.size();
    targets_.assign(arrays, std::vector<std::byte*>(signals.size(), nullptr));
    sources_.assign(arrays, std::vector<const std::byte*>(signals.size(), nullptr));
    std::vector<std::vector<char>> to_stage(signals.size(), std::vector<char>(arrays));
    std::vector<std::vector<char>> from_stage = to_stage;
    std::vector<bool> direct(signals.size());  // one of the two reads or writes the other's buffers
    for (std::size_t array = 0; array < arrays; ++array) {
        if (!plan_.arrays_[array].moves) continue;
        targets_[array][signals.rank()] = own_targets_[array];
        const bool own_source = is_shared(buffers_.addresses[2 * array]);
        const bool own_target = is_shared(buffers_.addresses[2 * array + 1]);
        for (const std::size_t peer : plan_.partners_) {
            const Address& source = published(peer, 2 * array);
            const Address& target = published(peer, 2 * array + 1);
            const Way out = way_of(own_source, is_shared(target), plan_.store_);
            const Way in = way_of(is_shared(source), own_target, plan_.store_);
            if (out == Way::push) {
                auto reached = reach(target, array, peer);
                if (!reached) return tl::unexpected(reached.error());
                targets_[array][peer] = *reached;
            }
            if (in == Way::pull) {
                auto reached = reach(source, array, peer);
                if (!reached) return tl::unexpected(reached.error());
                sources_[array][peer] = *reached;
            }
            to_stage[peer][array] = out == Way::window ? 1 : 0;
            from_stage[peer][array] = in == Way::window ? 1 : 0;
            direct[peer] = direct[peer] || out != Way::window || in != Way::window;
        }
    }
    std::vector<char> own(arrays);
    for (std::size_t array = 0; array < arrays; ++array) {
        own[array] = std::ranges::any_of(to_stage, [&](const auto& staged) { return staged[array] != 0; }) ? 1 : 0;
        if (own[array] != 0) targets_[array][signals.rank()] = nullptr;  // on the way
    }
    plan_.windows_.restart(to_stage, from_stage, own, window_store());
    for (const std::size_t peer : plan_.partners_) {
        if (direct[peer]) leaving_.push_back({peer, &signals.line(peer).done, run_});
    }
    return {};
}

// No peer reaches the buffers, so none has to be there yet.
void ShmCopy::stage_all() {
    std::vector<char> moves;
    for (const ShmCopyPlan::Array& array : plan_.arrays_) moves.push_back(array.moves ? 1 : 0);
    const std::vector<std::vector<char>> all(plan_.signals_->size(), moves);
    plan_.windows_.restart(all, all, moves, window_store());
}

void ShmCopy::sweep() {
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array) {
        ShmCopyPlan::Array& moved = plan_.arrays_[array];
        if (!moved.moves) continue;
        moved.push.push(own_sources_[array], targets_[array], plan_.store_);
        const bool pulls =
            std::ranges::any_of(sources_[array], [](const std::byte* source) { return source != nullptr; });
        if (pulls) moved.pull.pull(own_targets_[array], sources_[array], plan_.store_);
    }
}

}  // namespace reshard::mpi
