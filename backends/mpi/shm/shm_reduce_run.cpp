#include "backends/mpi/shm/shm_reduce_run.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

ShmReduceRun::ShmReduceRun(ShmReducePlan& plan, const ShmAddresses& buffers)
    : MailedRun(*plan.signals_, buffers, ++plan.runs_, plan.others_, plan.mailboxes_ ? &*plan.mailboxes_ : nullptr),
      plan_(plan) {}

// No rank waits for room in a bounce buffer. A rank that has filled the round before has emptied the half of the round
// before that, and all ranks waited for that.
Result<bool> ShmReduceRun::next(Slice most) {
    const auto when = [](Result<bool> there, const auto& go_on) {
        if (there && *there) go_on();
        return there;
    };
    if (is_mailed()) return next_by_mail(most);
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
    const auto there = wait(&SignalLine::entered, run_, plan_.others_, most);
    if (!there || !*there) return there;
    std::vector<char> staged;
    for (ShmReducePlan::Array& array : plan_.arrays_) {
        staged.push_back(reached_by_all(array) ? 0 : 1);
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
            sources[rank] = buffers_.sources[array.array];
            targets[rank] = buffers_.targets[array.array];
            continue;
        }
        RESHARD_ASSIGN(sources[rank], reach(*plan_.arena_, rank, 2 * array.array, array.step, views_));
        if (!array.for_all) continue;
        RESHARD_ASSIGN(targets[rank], reach(*plan_.arena_, rank, 2 * array.array + 1, array.step, views_));
    }
    for (MultiReduce& fold : array.folds) fold.run(sources, targets, plan_.store_);
    return {};
}

// Turns keep counting over all runs, two for each round. Every rank has the same number of rounds.
std::uint64_t ShmReduceRun::turn_of(bool added) const { return plan_.turns_ + 2 * round_ + (added ? 2 : 1); }

std::byte* ShmReduceRun::bounce_buffer(std::size_t rank) const {
    return plan_.bounce_buffers_[rank] + static_cast<Index>(round_ % 2) * plan_.half_bytes_;
}

void ShmReduceRun::read() {
    std::vector<const std::byte*>& sources = plan_.sources_;
    plan_.mailboxes_->find(run_, sources);
    for (ShmReducePlan::Array& array : plan_.arrays_) {
        sources[plan_.rank_] = buffers_.sources[array.array];
        plan_.targets_[plan_.rank_] = buffers_.targets[array.array];
        for (MultiReduce& fold : array.folds) fold.run(sources, plan_.targets_, Store::cached);
    }
    plan_.mailboxes_->free(run_);
}

void ShmReduceRun::fill() {
    for (const auto& [array, rank, copy] : round().fills) copy.run(buffers_.sources[array], bounce_buffer(rank));
    say(&SignalLine::turn, turn_of(false), plan_.others_);
    phase_ = Phase::adding;
}

void ShmReduceRun::add() {
    for (std::size_t rank = 0; rank < plan_.ranks_; ++rank) {
        plan_.sources_[rank] = bounce_buffer(plan_.rank_);
        plan_.targets_[rank] = bounce_buffer(rank);
    }
    for (auto& [array, fold] : round().sums) {
        plan_.sources_[plan_.rank_] = buffers_.sources[array];
        plan_.targets_[plan_.rank_] = buffers_.targets[array];
        fold.run(plan_.sources_, plan_.targets_, round().for_all ? Store::cached : plan_.store_);
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
    for (const auto& [array, rank, copy] : round().landings)
        copy.run(bounce_buffer(rank), buffers_.targets[array], plan_.store_);
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
