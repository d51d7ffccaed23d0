#include "backends/mpi/shm/shm_reduce_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/mpi/base/agree.hpp"

#include "src/base/cache_line.hpp"
#include "src/base/try.hpp"
#include "src/schedule/box_cut.hpp"

namespace reshard::mpi {
namespace {

constexpr Index aligned_bytes = 16;  // fits an element of any dtype

Index up_to(Index bytes, Index unit) { return ceil_divide(bytes, unit) * unit; }

Index bytes_of(const std::vector<Box>& boxes, DType dtype) {
    Index bytes = 0;
    for (const Box& box : boxes) bytes += up_to(count(box) * size_of(dtype), aligned_bytes);
    return bytes;
}

// Returns the parts of one kind in the order of the schedules that they come from.
class Next {
public:
    explicit Next(const std::vector<PeerRegion>& parts) : parts_(parts) {}
    const PeerRegion& operator()() { return parts_[at_++]; }

private:
    const std::vector<PeerRegion>& parts_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<Summands> summands_of(const Schedule& schedule) {
    std::vector<Transfer> receives = schedule.receives;
    std::erase_if(receives, [](const Transfer& receive) { return count(receive.box) == 0; });
    Summands found;
    for (const Transfer& receive : receives) {
        if (receive.peer == receives.front().peer) found.boxes.push_back(receive.box);
    }
    for (std::size_t i = 0; i < receives.size(); ++i) {
        if (receives[i].box != found.boxes[i % found.boxes.size()]) return std::nullopt;
        if (i % found.boxes.size() == 0) found.ranks.push_back(receives[i].peer);
        if (receives[i].peer != found.ranks.back()) return std::nullopt;
    }
    if (receives.size() != found.ranks.size() * found.boxes.size()) return std::nullopt;
    return found;
}

Box share_of(const Box& box, Index element_bytes, Index rank, Index ranks) {
    if (box.empty()) return box;
    const auto divides = [&](const Interval& side) { return side.size() >= ranks; };
    auto longest = std::ranges::find_if(box, divides);
    if (longest == box.end()) longest = std::ranges::max_element(box, {}, &Interval::size);
    // Whole cache lines, if there are many along the dimension.
    const Index line = line_bytes / element_bytes;
    const Index unit = longest->size() >= line * ranks * 4 ? line : 1;
    const Index units = ceil_divide(longest->size(), unit);
    const auto begin_of = [&](Index which) {
        const Index before = units / ranks * which + std::min(which, units % ranks);
        return longest->begin + std::min(before * unit, longest->size());
    };
    Box share = box;
    share[static_cast<std::size_t>(longest - box.begin())] = {begin_of(rank), begin_of(rank + 1)};
    return share;
}

Index ShmReducePlan::smallest_bounce_bytes(Index ranks) { return 4 * ranks * line_bytes; }

bool ShmReducePlan::takes(std::size_t array) const {
    return std::ranges::find(arrays_, array, &Array::array) != arrays_.end();
}

std::string ShmReducePlan::describe() const {
    if (is_small()) return fmt::format("sums at once through mailboxes of {} bytes", bounce_bytes());
    return fmt::format("sums in one pass through shared memory ({}; bounce buffers of {} bytes for unregistered ones)",
                       store_ == Store::streaming ? "non-temporal stores" : "cached stores", bounce_bytes());
}

Result<std::unique_ptr<ShmReducePlan>> ShmReducePlan::make(MPI_Comm communicator, const std::shared_ptr<Arena>& arena,
                                                           std::span<const ArrayStep> steps, Index bounce_bytes,
                                                           std::chrono::milliseconds timeout) {
    std::unique_ptr<ShmReducePlan> plan(new ShmReducePlan);
    plan->arena_ = arena;
    plan->rank_ = static_cast<std::size_t>(rank_of(communicator));
    plan->ranks_ = static_cast<std::size_t>(size_of_communicator(communicator));
    for (std::size_t rank = 0; rank < plan->ranks_; ++rank) {
        if (rank != plan->rank_) plan->others_.push_back(rank);
    }
    plan->sources_.resize(plan->ranks_);
    plan->targets_.resize(plan->ranks_);
    const auto add = [&](const PeerRegions& parts) { return plan->add_arrays(parts, steps); };
    RESHARD_CHECK(all_succeeded(communicator, exchange_parts(communicator, steps).and_then(add), steps.size()));
    RESHARD_ASSIGN(plan->signals_, Signals::make(communicator, arena, signal_addresses(steps.size()), timeout));
    RESHARD_CHECK(plan->choose(communicator, bounce_bytes));
    if (plan->is_small()) {
        RESHARD_CHECK(plan->mailboxes_->make(communicator, *plan->signals_, *arena, plan->mailed_));
    } else {
        RESHARD_CHECK(plan->make_bounce_buffers(communicator));
    }
    for (Array& array : plan->arrays_) plan->add_folds(array);
    return plan;
}

Result<void> ShmReducePlan::add_arrays(const PeerRegions& parts, std::span<const ArrayStep> steps) {
    Next sent(parts.sends);
    Next received(parts.receives);
    Next kept(parts.own);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step == nullptr) continue;
        const Schedule& schedule = steps[i].step->schedule;
        Array array{i,
                    steps[i].step->step,
                    steps[i].step->from_dtype,
                    schedule.combine,
                    schedule.kind == StepKind::all_reduce,
                    {},
                    std::vector<Taker>(ranks_),
                    std::vector<std::vector<Region>>(ranks_),
                    {}};
        for (const Transfer& send : schedule.sends) {
            if (count(send.box) == 0) continue;
            const PeerRegion& part = sent();
            mailed_.sends.push_back({i, part.peer, part.source, packed_region(send.box, size_of(array.dtype))});
            Taker& taker = array.takers[part.peer];
            taker.boxes.push_back(send.box);
            taker.summands.push_back(part.source);
            taker.targets.push_back(part.target);
        }
        Taker& own = array.takers[rank_];
        for (const Transfer& receive : schedule.receives) {
            if (count(receive.box) == 0) continue;
            const PeerRegion& part = static_cast<std::size_t>(receive.peer) == rank_ ? kept() : received();
            array.summands[part.peer].push_back(part.source);
            if (part.peer != rank_) {
                const Region packed = packed_region(receive.box, size_of(array.dtype));
                mailed_.receives.push_back({i, part.peer, packed, packed});
                continue;
            }
            own.boxes.push_back(receive.box);
            own.summands.push_back(part.source);
            own.targets.push_back(part.target);
        }
        const auto summands = summands_of(schedule);
        if (summands) array.order.assign(summands->ranks.begin(), summands->ranks.end());
        RESHARD_CHECK(fits(array));
        add_reached(array);
        arrays_.push_back(std::move(array));
    }
    return {};
}

// Every rank must have a summand of each box that another one takes. If all take the sum, they take the same boxes.
Result<void> ShmReducePlan::fits(const Array& array) const {
    const Taker& own = array.takers[rank_];
    bool well = own.boxes.empty() || array.order.size() == ranks_;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
        well = well && array.summands[rank].size() == own.boxes.size();
        well = well && (!array.for_all || array.takers[rank].boxes == own.boxes);
    }
    if (well) return {};
    return fail(Code::backend, fmt::format("array {}, step {}: the ranks of the sum do not add up the same boxes",
                                           array.array, array.step + 1));
}

// The summands of a small sum lie in the messages, one after the other.
void ShmReducePlan::add_folds(Array& array) const {
    const Taker& own = array.takers[rank_];
    const bool shares = array.for_all && !is_small();
    std::vector<Index> used(ranks_, 0);
    for (const PeerRegion& part : mailed_.receives) {
        if (part.array < array.array) used[part.peer] = place_of(part, used[part.peer]) + sent_bytes(part);
    }
    for (std::size_t i = 0; i < own.boxes.size(); ++i) {
        const Box& box = own.boxes[i];
        const Index element_bytes = size_of(array.dtype);
        const Box part =
            shares ? share_of(box, element_bytes, static_cast<Index>(rank_), static_cast<Index>(ranks_)) : box;
        if (count(part) == 0) continue;
        std::vector<MultiReduce::Operand> summands;
        for (const std::size_t rank : array.order) {
            if (rank == rank_ || !is_small()) {
                summands.push_back({rank, within(array.summands[rank][i], box, part)});
                continue;
            }
            const Index place = up_to(used[rank], element_bytes);
            summands.push_back({rank, packed_region(box, element_bytes, place)});
            used[rank] = place + count(box) * element_bytes;
        }
        std::vector<MultiReduce::Operand> targets;
        for (std::size_t k = 0; k < ranks_; ++k) {
            const std::size_t rank = (rank_ + k) % ranks_;  // own target first: the others most likely lie the same way
            if (rank == rank_ || shares) targets.push_back({rank, within(array.takers[rank].targets[i], box, part)});
        }
        array.folds.emplace_back(array.dtype, array.combine, summands, targets);
    }
}

void ShmReducePlan::add_reached(const Array& array) {
    const Taker& own = array.takers[rank_];
    for (const std::size_t peer : others_) {
        const Taker& taker = array.takers[peer];
        for (std::size_t i = 0; i < taker.boxes.size(); ++i) {
            reached_.sends.push_back({array.array, peer, taker.summands[i], taker.targets[i]});
        }
        for (std::size_t i = 0; array.for_all && i < own.boxes.size(); ++i) {
            const Box part =
                share_of(own.boxes[i], size_of(array.dtype), static_cast<Index>(peer), static_cast<Index>(ranks_));
            if (count(part) == 0) continue;
            reached_.receives.push_back({array.array, peer, {}, within(own.targets[i], own.boxes[i], part)});
        }
    }
}

// Mailboxes, with each rank adding up for itself, win if reading everything is cheaper than a second barrier. If all
// ranks want a sum, each of them reads all summands, and through bounce buffers it would read about two.
bool ShmReducePlan::pays_by_mail(Index taken, Index for_all, Index ranks, Index barrier_bytes) {
    return taken <= barrier_bytes / ranks && for_all * ranks * (ranks - 1) <= 4 * barrier_bytes;
}

Result<void> ShmReducePlan::choose(MPI_Comm communicator, Index bounce_bytes) {
    Index scattered = 0;
    Index for_all = 0;
    for (const Array& array : arrays_) {
        (array.for_all ? for_all : scattered) += bytes_of(array.takers[rank_].boxes, array.dtype);
    }
    const bool fits = Mailboxes::bytes(mailed_.receives, ranks_) <= bounce_bytes;
    RESHARD_TRY(const auto& least,
                reduced(communicator, std::array<Index, 4>{bounce_bytes, -scattered, -for_all, fits ? 1 : 0},
                        MPI_INT64_T, MPI_MIN));
    const auto ranks = static_cast<Index>(ranks_);
    const Index others = ranks - 1;
    const Index taken = -least[1] - least[2];
    const Index touched = taken - ranks * least[1] - least[2];  // bytes that each rank writes and reads
    store_ = store_for_moved(touched * ranks / 2);              // about half of it is written
    if (others == 0) return {};
    if (least[3] != 0 && pays_by_mail(taken, -least[2], ranks, signals_->barrier_bytes())) {
        mailboxes_.emplace();
        return {};
    }
    const Index slots = others * (least[2] < 0 ? 2 : 1);
    const Index wanted = std::max(-least[1], ceil_divide(-least[2], ranks));
    const Index granted = least[0] / 2 / slots / line_bytes * line_bytes;
    slot_bytes_ = std::min(std::max(granted, line_bytes), up_to(wanted, line_bytes));
    half_bytes_ = slots * slot_bytes_;
    return {};
}

Result<void> ShmReducePlan::make_bounce_buffers(MPI_Comm communicator) {
    const auto taken = half_bytes_ > 0 ? signals_->take(2 * half_bytes_) : Address{};
    RESHARD_TRY(const auto& places, gathered(communicator, taken.value_or(Address{})));
    const auto reach_all = [&](const Address&) -> Result<void> {
        for (std::size_t rank = 0; half_bytes_ > 0 && rank < ranks_; ++rank) {
            RESHARD_TRY(const auto& reached, arena_->reach(places[rank], views_));
            bounce_buffers_.push_back(reached);
        }
        return {};
    };
    return all_succeeded(communicator, taken.and_then(reach_all), 1);
}

std::vector<ShmReducePlan::Piece> ShmReducePlan::cut(const Array& array, std::size_t taker) const {
    std::vector<Piece> pieces;
    const std::vector<Box>& boxes = array.takers[taker].boxes;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        for (Box& part : slabs(boxes[i], slot_bytes_ / size_of(array.dtype))) {
            pieces.push_back({&array, taker, i, std::move(part), 0});
        }
    }
    return pieces;
}

// The same on all ranks, since each has a summand of every box that any rank takes. First come the sums that one rank
// takes, slot by slot. Then come the sums that all take: the slots of a round are dealt out to the ranks.
void ShmReducePlan::deal(const std::vector<char>& staged) {
    if (staged == staged_) return;
    staged_ = staged;
    rounds_.clear();
    const auto deal_to = [&](std::size_t first, std::size_t in_turn, std::size_t taker, bool back) {
        std::size_t slot = 0;
        Index used = 0;
        for (std::size_t i = 0; i < arrays_.size(); ++i) {
            if (staged_[i] == 0 || arrays_[i].for_all != back) continue;
            for (Piece& piece : cut(arrays_[i], taker)) {
                const Index bytes = up_to(count(piece.box) * size_of(arrays_[i].dtype), aligned_bytes);
                if (used + bytes > slot_bytes_) {
                    ++slot;
                    used = 0;
                }
                piece.offset = used;
                used += bytes;
                if (back) piece.taker = slot % in_turn;
                const std::size_t round = first + slot / in_turn;
                rounds_.resize(std::max(rounds_.size(), round + 1));
                rounds_[round].for_all = back;
                add_piece(rounds_[round], piece);
            }
        }
    };
    for (std::size_t rank = 0; rank < ranks_; ++rank) deal_to(0, 1, rank, false);
    deal_to(rounds_.size(), ranks_, rank_, true);
}

// Adds the copies and the sum of a piece that this rank makes. If all want the sum, the rank that adds up writes it
// back to all others.
void ShmReducePlan::add_piece(Round& round, const Piece& piece) const {
    const Array& array = *piece.array;
    const Taker& taker = array.takers[piece.taker];
    const auto inside = [&](const Region& region) { return within(region, taker.boxes[piece.number], piece.box); };
    if (piece.taker != rank_) {
        round.fills.push_back({array.array, piece.taker,
                               BoxCopy(inside(taker.summands[piece.number]), slot(piece, rank_, piece.taker, false))});
        if (!round.for_all) return;
        const Region target = inside(array.takers[rank_].targets[piece.number]);
        round.landings.push_back({array.array, rank_, BoxCopy(slot(piece, piece.taker, rank_, true), target)});
        return;
    }
    std::vector<MultiReduce::Operand> summands;
    for (const std::size_t rank : array.order) {
        summands.push_back(
            {rank, rank == rank_ ? inside(taker.summands[piece.number]) : slot(piece, rank, rank_, false)});
    }
    std::vector<MultiReduce::Operand> targets = {{rank_, inside(taker.targets[piece.number])}};
    for (std::size_t rank = 0; rank < ranks_ && round.for_all; ++rank) {
        if (rank != rank_) targets.push_back({rank, slot(piece, rank_, rank, true)});
    }
    round.sums.push_back({array.array, MultiReduce(array.dtype, array.combine, summands, targets)});
}

// The place of a piece in the bounce buffer of `owner`. Another rank writes it: its summand, or with `back` the sum.
Region ShmReducePlan::slot(const Piece& piece, std::size_t writer, std::size_t owner, bool back) const {
    const std::size_t number = (writer < owner ? writer : writer - 1) + (back ? ranks_ - 1 : 0);
    return packed_region(piece.box, size_of(piece.array->dtype),
                         static_cast<Index>(number) * slot_bytes_ + piece.offset);
}

}  // namespace reshard::mpi
