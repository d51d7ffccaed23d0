#include "backends/mpi/shm/shm_reduce_run.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reshard::mpi {

ShmReduceRun::ShmReduceRun(ShmReducePlan& plan, const ShmAddresses& buffers)
    : plan_(plan), buffers_(buffers), run_(++plan.runs_), waiting_(*plan.signals_) {
    Signals& signals = *plan_.signals_;
    for (std::size_t i = 0; i < buffers_.addresses.size(); ++i) published(plan_.rank_, i) = buffers_.addresses[i];
    signals.line(plan_.rank_).entered.store(run_, std::memory_order_release);
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank != plan_.rank_ && !plan_.at_once_) signals.tell(rank);
    }
}

// A rank may begin its next run while a peer still reads what it published for this one; it cannot begin the one after.
Address& ShmReduceRun::published(std::size_t rank, std::size_t index) const {
    return plan_.signals_->address(rank, (run_ % 2) * buffers_.addresses.size() + index);
}

const std::byte* ShmReduceRun::own_source(const ShmReducePlan::Array& array) const {
    return buffers_.buffers[array.array].source.data();
}

std::byte* ShmReduceRun::own_target(const ShmReducePlan::Array& array) const {
    return buffers_.buffers[array.array].target.data();
}

// For all others.
Result<bool> ShmReduceRun::wait(Counter SignalLine::*counter, std::uint64_t least, Slice most) {
    Signals::Wanteds wanted;
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank != plan_.rank_) wanted.push_back({rank, &(plan_.signals_->line(rank).*counter), least});
    }
    return waiting_.on(wanted, Signals::Need::all, most);
}

Result<bool> ShmReduceRun::advance(Slice most) {
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

// One phase. False when it waits for a peer. Nobody waits for room in a window: whoever has filled the round before has
// emptied the half of the one before that, and all waited for that.
Result<bool> ShmReduceRun::next(Slice most) {
    const auto when = [](Result<bool> there, const auto& go_on) {
        if (there && *there) go_on();
        return there;
    };
    switch (phase_) {
        case Phase::entering:
            return enter(most);
        case Phase::filling:
            round_ == plan_.rounds_.size() ? leave() : fill();
            return true;
        case Phase::adding:
            return when(wait(&SignalLine::turn, turn_of(false), most), [&] { add(); });
        case Phase::landing:
            return when(wait(&SignalLine::turn, turn_of(true), most), [&] { land(); });
        case Phase::leaving:
            return when(direct_ ? wait(&SignalLine::done, run_, most) : true, [&] { phase_ = Phase::over; });
        case Phase::over:
            break;
    }
    return true;
}

// Which arrays all reach, all decide alike: from the same addresses.
Result<bool> ShmReduceRun::enter(Slice most) {
    if (auto kept = buffers_.kept(*plan_.arena_); !kept) return tl::unexpected(kept.error());
    if (!plan_.at_once_) {
        const auto there = wait(&SignalLine::entered, run_, most);
        if (!there || !*there) return there;
    }
    std::vector<char> staged;
    for (ShmReducePlan::Array& array : plan_.arrays_) {
        staged.push_back(plan_.at_once_ || !reached_by_all(array) ? 1 : 0);
        if (staged.back() != 0) continue;
        direct_ = true;
        if (auto done = add_directly(array); !done) return tl::unexpected(done.error());
    }
    plan_.deal(staged);
    phase_ = Phase::filling;
    return true;
}

bool ShmReduceRun::reached_by_all(const ShmReducePlan::Array& array) const {
    for (std::size_t rank = 0; rank < plan_.ranks_ && plan_.ranks_ > 1; ++rank) {
        if (!is_shared(published(rank, 2 * array.array))) return false;
        if (array.for_all && !is_shared(published(rank, 2 * array.array + 1))) return false;
    }
    return true;
}

Result<void> ShmReduceRun::add_directly(ShmReducePlan::Array& array) {
    std::vector<const std::byte*> sources(plan_.ranks_, nullptr);
    std::vector<std::byte*> targets(plan_.ranks_, nullptr);
    const auto reach = [&](std::size_t rank, std::size_t side) -> Result<std::byte*> {
        auto reached = plan_.arena_->reach(published(rank, 2 * array.array + side), views_);
        if (reached) return reached;
        return fail(Code::backend, fmt::format("array {}, step {}: reaching the memory of rank {}: {}", array.array,
                                               array.step + 1, rank, reached.error().message));
    };
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank == plan_.rank_) {
            sources[rank] = own_source(array);
            targets[rank] = own_target(array);
            continue;
        }
        const auto source = reach(rank, 0);
        if (!source) return tl::unexpected(source.error());
        sources[rank] = *source;
        if (!array.for_all) continue;
        const auto target = reach(rank, 1);
        if (!target) return tl::unexpected(target.error());
        targets[rank] = *target;
    }
    for (const MultiReduce& fold : array.folds) fold.run(sources, targets, plan_.store_);
    return {};
}

// Turns count on over all runs, two a round; every rank has as many rounds.
std::uint64_t ShmReduceRun::turn_of(bool added) const { return plan_.turns_ + 2 * round_ + (added ? 2 : 1); }

void ShmReduceRun::turn(std::uint64_t to) {
    plan_.signals_->line(plan_.rank_).turn.store(to, std::memory_order_release);
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank != plan_.rank_) plan_.signals_->tell(rank);
    }
}

// Runs of one round take the halves in turn too: they follow each other without a meeting.
std::size_t ShmReduceRun::half() const { return (plan_.at_once_ ? run_ : round_) % 2; }

void ShmReduceRun::fill() {
    for (const ShmReducePlan::Piece& piece : round().pieces) {
        if (piece.taker == plan_.rank_) continue;
        const ShmReducePlan::Taker& taker = piece.array->takers[piece.taker];
        const Region source = within(taker.summands[piece.number], taker.boxes[piece.number], piece.box);
        BoxCopy(source, plan_.slot(piece, plan_.rank_, piece.taker, half(), false))
            .run(own_source(*piece.array), plan_.windows_[piece.taker]);
    }
    turn(turn_of(false));
    phase_ = Phase::adding;
}

void ShmReduceRun::add() {
    const std::size_t own = plan_.rank_;
    for (const ShmReducePlan::Piece& piece : round().pieces) {
        if (piece.taker != own) continue;
        const ShmReducePlan::Taker& taker = piece.array->takers[own];
        const auto inside = [&](const Region& region) { return within(region, taker.boxes[piece.number], piece.box); };
        std::vector<MultiReduce::Operand> summands;
        for (const std::size_t rank : piece.array->order) {
            summands.push_back({rank, rank == own ? inside(taker.summands[piece.number])
                                                  : plan_.slot(piece, rank, own, half(), false)});
        }
        std::vector<MultiReduce::Operand> targets = {{own, inside(taker.targets[piece.number])}};
        for (std::size_t rank = 0; rank < plan_.ranks_ && round().for_all; ++rank) {
            if (rank != own) targets.push_back({rank, plan_.slot(piece, own, rank, half(), true)});
        }
        std::vector<const std::byte*> from(plan_.ranks_, plan_.windows_[own]);
        from[own] = own_source(*piece.array);
        std::vector<std::byte*> to = plan_.windows_;
        to[own] = own_target(*piece.array);
        MultiReduce(piece.array->dtype, piece.array->combine, summands, targets)
            .run(from, to, round().for_all ? Store::cached : plan_.store_);
    }
    if (round().for_all) {
        turn(turn_of(true));
        phase_ = Phase::landing;
    } else {
        ++round_;
        phase_ = Phase::filling;
    }
}

void ShmReduceRun::land() {
    for (const ShmReducePlan::Piece& piece : round().pieces) {
        if (piece.taker == plan_.rank_) continue;
        const ShmReducePlan::Taker& own = piece.array->takers[plan_.rank_];
        const Region target = within(own.targets[piece.number], own.boxes[piece.number], piece.box);
        BoxCopy(plan_.slot(piece, piece.taker, plan_.rank_, half(), true), target)
            .run(plan_.windows_[plan_.rank_], own_target(*piece.array), plan_.store_);
    }
    ++round_;
    phase_ = Phase::filling;
}

void ShmReduceRun::leave() {
    plan_.turns_ += 2 * plan_.rounds_.size();
    store_fence();
    Signals& signals = *plan_.signals_;
    signals.line(plan_.rank_).done.store(run_, std::memory_order_release);
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank != plan_.rank_ && direct_) signals.tell(rank);
    }
    phase_ = Phase::leaving;
}

}  // namespace reshard::mpi
