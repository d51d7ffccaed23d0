#include "backends/mpi/shm/shm_reduce_run.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

ShmReduceRun::ShmReduceRun(ShmReducePlan& plan, const ShmAddresses& buffers)
    : ShmRun(*plan.signals_, buffers, ++plan.runs_, plan.at_once_ ? Ranks() : plan.others_), plan_(plan) {}

const std::byte* ShmReduceRun::own_source(const ShmReducePlan::Array& array) const {
    return buffers_.buffers[array.array].source.data();
}

std::byte* ShmReduceRun::own_target(const ShmReducePlan::Array& array) const {
    return buffers_.buffers[array.array].target.data();
}

// No rank waits for room in a bounce buffer. A rank that has filled the round before has emptied the half of the round
// before that, and all ranks waited for that.
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
            return when(wait(&SignalLine::turn, turn_of(false), plan_.others_, most), [&] { add(); });
        case Phase::landing:
            return when(wait(&SignalLine::turn, turn_of(true), plan_.others_, most), [&] { land(); });
        case Phase::leaving:
            return when(wait(&SignalLine::done, run_, direct_ ? plan_.others_ : Ranks(), most), [&] {
                for (const auto& [array, peer] : written_) bring_back(array, peer);
                end();
            });
    }
    return true;
}

// All ranks decide from the same addresses, so they agree on the arrays that all reach.
Result<bool> ShmReduceRun::enter(Slice most) {
    RESHARD_CHECK(buffers_.kept(*plan_.arena_));
    if (!plan_.at_once_) {
        const auto there = wait(&SignalLine::entered, run_, plan_.others_, most);
        if (!there || !*there) return there;
    }
    std::vector<char> staged;
    for (ShmReducePlan::Array& array : plan_.arrays_) {
        staged.push_back(plan_.at_once_ || !reached_by_all(array) ? 1 : 0);
        if (staged.back() != 0) continue;
        direct_ = true;
        for (std::size_t i = 0; array.for_all && i < plan_.others_.size(); ++i) {
            if (!buffers_.written_by_peers.empty()) written_.emplace_back(array.array, plan_.others_[i]);
        }
        RESHARD_CHECK(signals_.touch([&] { return add_directly(array); }));
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
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        if (rank == plan_.rank_) {
            sources[rank] = own_source(array);
            targets[rank] = own_target(array);
            continue;
        }
        RESHARD_ASSIGN(sources[rank], reach(*plan_.arena_, rank, 2 * array.array, array.step, views_));
        if (!array.for_all) continue;
        RESHARD_ASSIGN(targets[rank], reach(*plan_.arena_, rank, 2 * array.array + 1, array.step, views_));
    }
    for (const MultiReduce& fold : array.folds) fold.run(sources, targets, plan_.store_);
    return {};
}

// Turns keep counting over all runs, two for each round. Every rank has the same number of rounds.
std::uint64_t ShmReduceRun::turn_of(bool added) const { return plan_.turns_ + 2 * round_ + (added ? 2 : 1); }

// Runs of one round use the halves in turn too, so they follow each other without a barrier.
std::size_t ShmReduceRun::half() const { return (plan_.at_once_ ? run_ : round_) % 2; }

void ShmReduceRun::fill() {
    for (const ShmReducePlan::Piece& piece : round().pieces) {
        if (piece.taker == plan_.rank_) continue;
        const ShmReducePlan::Taker& taker = piece.array->takers[piece.taker];
        const Region source = within(taker.summands[piece.number], taker.boxes[piece.number], piece.box);
        BoxCopy(source, plan_.slot(piece, plan_.rank_, piece.taker, half(), false))
            .run(own_source(*piece.array), plan_.bounce_buffers_[piece.taker]);
    }
    say(&SignalLine::turn, turn_of(false), plan_.others_);
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
        std::vector<const std::byte*> from(plan_.ranks_, plan_.bounce_buffers_[own]);
        from[own] = own_source(*piece.array);
        std::vector<std::byte*> to = plan_.bounce_buffers_;
        to[own] = own_target(*piece.array);
        MultiReduce(piece.array->dtype, piece.array->combine, summands, targets)
            .run(from, to, round().for_all ? Store::cached : plan_.store_);
    }
    if (round().for_all) {
        say(&SignalLine::turn, turn_of(true), plan_.others_);
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
            .run(plan_.bounce_buffers_[plan_.rank_], own_target(*piece.array), plan_.store_);
    }
    ++round_;
    phase_ = Phase::filling;
}

void ShmReduceRun::leave() {
    plan_.turns_ += 2 * plan_.rounds_.size();
    store_fence();
    say(&SignalLine::done, run_, direct_ ? plan_.others_ : Ranks());
    phase_ = Phase::leaving;
}

}  // namespace reshard::mpi
