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
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step == nullptr) continue;
        const RankStep& step = *steps[i].step;
        const ElementCast cast = cast_of(step.from_dtype, step.to_dtype);
        plan->casts_ = plan->casts_ || cast;
        plan->arrays_[i] = {true, step.step, false, MultiCopy(MultiCopy::Kind::push, cast),
                            MultiCopy(MultiCopy::Kind::pull, cast)};
    }
    std::set<std::size_t> partners;
    for (const PeerRegion& part : parts.own) {
        plan->arrays_[part.array].push.add(part.peer, part.source, part.target);
        plan->arrays_[part.array].stays = true;
    }
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
    RESHARD_TRY(const bool small, plan->choose(communicator, parts, options));
    if (small) {
        RESHARD_CHECK(plan->mailboxes_.emplace().make(communicator, *plan->signals_, *plan->arena_, parts));
    } else {
        RESHARD_CHECK(plan->bounce_buffers_.make(communicator, *plan->signals_, *plan->arena_, parts,
                                                 options.bounce_bytes, plan->pack_stores(options)));
    }
    plan->reached_ = std::move(parts);
    plan->alone_.resize(plan->signals_->size());
    return plan;
}

void ShmCopyPlan::copy_alone(const Buffers& buffers) {
    alone_[signals_->rank()] = buffers.target.data();
    arrays_.front().push.push(buffers.source.data(), alone_, store_);
    store_fence();
}

// Mailboxes copy received data twice and save a barrier. Returns whether that is cheaper.
Result<bool> ShmCopyPlan::choose(MPI_Comm communicator, const PeerRegions& parts, const Options& options) {
    Index received = 0;
    for (const PeerRegion& part : parts.receives) received += bytes_of(part.target);
    Index written = received;
    for (const PeerRegion& part : parts.own) written += bytes_of(part.target);
    const bool fits = Mailboxes::bytes(parts.receives, signals_->size()) <= options.bounce_bytes;
    RESHARD_TRY(const auto& all,
                reduced(communicator, std::array<Index, 3>{written, received, fits ? 0 : 1}, MPI_INT64_T, MPI_SUM));
    store_ = store_for_moved(all[0]);
    // If ranks share cores, a wait costs as much as the second copy of some more KiB.
    const Index barrier = signals_->barrier_bytes();
    return all[0] <= (signals_->crowded() ? barrier : 2 * barrier) && all[1] < barrier && all[2] == 0;
}

PackStores ShmCopyPlan::pack_stores(const Options& options) const {
    switch (options.unregistered_buffers) {
        case UnregisteredBuffers::bounce:
            return PackStores(Store::cached);
        case UnregisteredBuffers::bounce_nontemporal:
            return PackStores(Store::streaming);
        case UnregisteredBuffers::by_size:
            break;
    }
    return PackStores(store_, true);
}

std::string ShmCopyPlan::describe() const {
    const char* cast = casts_ ? ", and the cast is part of the copy" : "";
    if (is_small()) return fmt::format("at once through mailboxes of {} bytes{}", bounce_bytes(), cast);
    return fmt::format("one pass through shared memory ({}; bounce buffers of {} bytes for unregistered buffers){}",
                       store_ == Store::streaming ? "push, non-temporal stores" : "pull, cached stores", bounce_bytes(),
                       cast);
}

void ShmCopyPlan::Paths::begin(std::size_t arrays, std::size_t ranks) {
    targets.resize(arrays);
    sources.resize(arrays);
    for (std::size_t array = 0; array < arrays; ++array) {
        targets[array].assign(ranks, nullptr);
        sources[array].assign(ranks, nullptr);
    }
    for (auto* const some : {&to_stage, &from_stage}) {
        some->resize(ranks);
        for (std::vector<char>& staged_for : *some) staged_for.assign(arrays, 0);
    }
    staged.assign(arrays, 0);
    pushes.assign(arrays, 0);
    pulls.assign(arrays, 0);
    written.clear();
    leaving.clear();
    views.clear();
    addresses.clear();
}

ShmCopy::ShmCopy(ShmCopyPlan& plan, const ShmAddresses& buffers)
    : MailedRun(*plan.signals_, buffers, ++plan.runs_, plan.partners_, plan.mailboxes_ ? &*plan.mailboxes_ : nullptr),
      plan_(plan),
      paths_(plan.paths_) {}

Result<bool> ShmCopy::next(Slice most) {
    if (is_mailed()) return next_by_mail(most);
    switch (phase_) {
        case Phase::keeping: {
            RESHARD_CHECK(buffers_.kept(*plan_.arena_));
            has_own_ = is_only_pulled();
            if (has_own_) push();
            phase_ = Phase::entering;
            return true;
        }
        case Phase::entering: {
            RESHARD_CHECK(buffers_.kept(*plan_.arena_));
            const auto there = wait(&SignalLine::entered, run_, plan_.partners_, most);
            if (!there || !*there) return there;
            RESHARD_CHECK(signals_.touch([&] { return sweep(); }));
            phase_ = Phase::staging;
            return true;
        }
        case Phase::staging: {
            if (paths_.bounces) {
                BounceBuffers& bounces = plan_.bounce_buffers_;
                if (bounces.advance(signals_, buffers_.sources, buffers_.targets, plan_.store_)) waiting_.moved();
                if (!bounces.wanted().empty()) return waiting_.on(bounces.wanted(), Signals::Need::any, most);
            }
            store_fence();
            say(&SignalLine::done, run_, paths_.leaving);
            phase_ = Phase::leaving;
            return true;
        }
        case Phase::leaving: {
            const auto done = wait(&SignalLine::done, run_, paths_.leaving, most);
            if (done && *done) {
                for (const auto& [array, peer] : paths_.written) bring_back(array, peer);
                if (paths_.bounces && plan_.repeated_) count_bounced();
                end();
            }
            return done;
        }
    }
    return true;
}

// The buffers of all sides are where the paths lead. A segment's name is never used again, so equal addresses are the
// same memory.
bool ShmCopy::is_resolved() const {
    if (!is_resolved_here()) return false;
    const std::size_t each = buffers_.addresses.size();
    auto known = paths_.addresses.begin();
    for (const std::size_t peer : plan_.partners_) {
        known += static_cast<std::ptrdiff_t>(each);
        if (!std::equal(known, known + static_cast<std::ptrdiff_t>(each), &published(peer, 0))) return false;
    }
    return true;
}

bool ShmCopy::is_resolved_here() const {
    const std::size_t each = buffers_.addresses.size();
    return paths_.addresses.size() == each * (1 + plan_.partners_.size()) && paths_.own == buffers_.targets &&
           paths_.shadows != buffers_.written_by_peers.empty() &&
           std::ranges::equal(buffers_.addresses, std::span(paths_.addresses).first(each));
}

// All peers pull what this rank sends, wherever their buffers are. So the parts that stay on this rank wait for nobody.
bool ShmCopy::is_only_pulled() const {
    if (plan_.store_ != Store::cached || !is_resolved_here()) return false;
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array)
        if (plan_.arrays_[array].moves && !is_shared(buffers_.addresses[2 * array])) return false;
    return true;
}

void ShmCopy::remember() {
    const std::size_t each = buffers_.addresses.size();
    paths_.addresses = buffers_.addresses;
    for (const std::size_t peer : plan_.partners_)
        paths_.addresses.insert(paths_.addresses.end(), &published(peer, 0), &published(peer, 0) + each);
    paths_.own = buffers_.targets;
    paths_.shadows = !buffers_.written_by_peers.empty();
}

Result<void> ShmCopy::resolve() {
    const std::size_t arrays = plan_.arrays_.size();
    paths_.begin(arrays, signals_.size());
    for (std::size_t array = 0; array < arrays; ++array) {
        if (!plan_.arrays_[array].moves) continue;
        paths_.targets[array][signals_.rank()] = buffers_.targets[array];
        paths_.pushes[array] = plan_.arrays_[array].stays ? 1 : 0;
    }
    for (const std::size_t peer : plan_.partners_) {
        bool direct = false;  // one of the two ranks reads or writes the other's buffers
        for (std::size_t array = 0; array < arrays; ++array) {
            if (!plan_.arrays_[array].moves) continue;
            RESHARD_TRY(const bool& straight, resolve(peer, array));
            direct = direct || straight;
        }
        if (direct) paths_.leaving.push_back(peer);
    }
    for (std::size_t array = 0; array < arrays; ++array)
        if (paths_.staged[array] != 0) paths_.targets[array][signals_.rank()] = nullptr;  // copied on the way
    const auto marked = [](const std::vector<char>& marks) { return std::ranges::count(marks, 1) > 0; };
    paths_.bounces = std::ranges::any_of(paths_.to_stage, marked) || std::ranges::any_of(paths_.from_stage, marked);
    remember();
    return {};
}

Result<bool> ShmCopy::resolve(std::size_t peer, std::size_t array) {
    const Address& source = published(peer, 2 * array);
    const Address& target = published(peer, 2 * array + 1);
    const Way out = way_of(is_shared(buffers_.addresses[2 * array]), is_shared(target), plan_.store_);
    const Way in = way_of(is_shared(source), is_shared(buffers_.addresses[2 * array + 1]), plan_.store_);
    const std::size_t step = plan_.arrays_[array].step;
    if (in == Way::push && !buffers_.written_by_peers.empty()) paths_.written.emplace_back(array, peer);
    if (out == Way::push) {
        RESHARD_ASSIGN(paths_.targets[array][peer], reach(*plan_.arena_, peer, 2 * array + 1, step, paths_.views));
        paths_.pushes[array] = 1;
    }
    if (in == Way::pull) {
        RESHARD_ASSIGN(paths_.sources[array][peer], reach(*plan_.arena_, peer, 2 * array, step, paths_.views));
        paths_.pulls[array] = 1;
    }
    if (out == Way::bounce) paths_.to_stage[peer][array] = paths_.staged[array] = 1;
    if (in == Way::bounce) paths_.from_stage[peer][array] = 1;
    return out != Way::bounce || in != Way::bounce;
}

void ShmCopy::while_on_their_way() { plan_.mailboxes_->copy_own(buffers_.sources, buffers_.targets); }

void ShmCopy::read() { plan_.mailboxes_->read(run_, buffers_.targets); }

void ShmCopy::push() {
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array)
        if (paths_.pushes[array] != 0)
            plan_.arrays_[array].push.push(buffers_.sources[array], paths_.targets[array], plan_.store_);
}

void ShmCopy::count_bounced() const {
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array) {
        const auto staged = [&](const std::vector<char>& peer) { return peer[array] != 0; };
        const Buffers& own = buffers_.buffers[array];
        const bool in_place = own.source.data() == own.target.data();
        if (std::ranges::any_of(paths_.from_stage, staged)) plan_.repeated_->count(own.target);
        if (!in_place && std::ranges::any_of(paths_.to_stage, staged)) plan_.repeated_->count(own.source);
    }
}

Result<void> ShmCopy::sweep() {
    if (!is_resolved()) RESHARD_CHECK(resolve());
    if (paths_.bounces) plan_.bounce_buffers_.restart(paths_.to_stage, paths_.from_stage, paths_.staged);
    if (!has_own_) push();
    for (std::size_t array = 0; array < plan_.arrays_.size(); ++array)
        if (paths_.pulls[array] != 0)
            plan_.arrays_[array].pull.pull(buffers_.targets[array], paths_.sources[array], plan_.store_);
    return {};
}

}  // namespace reshard::mpi
