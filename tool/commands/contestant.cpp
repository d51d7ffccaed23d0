#include "tool/commands/contestant.hpp"

#include <utility>

#include "reshard/planner/view.hpp"
#include "src/base/try.hpp"
#include "tool/data/changed_values.hpp"

namespace reshard::cli {

namespace {

// None: the rank's own backend.
Result<std::unique_ptr<Backend>> baseline_of(Rank& rank, Carrier carrier) {
    if (carrier == Carrier::messages) return rank.messages();
    if (carrier == Carrier::alltoallw) return rank.by_hand(ByHand::alltoallw);
    if (carrier == Carrier::messages_of_boxes) return rank.by_hand(ByHand::messages_of_boxes);
    if (carrier == Carrier::broadcasts) return rank.by_hand(ByHand::broadcasts);
    if (carrier == Carrier::reductions) return rank.by_hand(ByHand::reductions);
    return nullptr;
}

}  // namespace

Contestant::Contestant(std::string name, Result<Judged<Plan>> plan, Carrier carrier, Moved moved)
    : plan_(std::move(plan)),
      carrier_(carrier),
      moved_(std::move(moved)),
      values_(generated(moved_.source, moved_.reduced)) {
    score_.name = std::move(name);
    if (!plan_) score_.error = plan_.error();
}

Result<void> Contestant::set_up(Rank& rank, Progress& progress) {
    RESHARD_ASSIGN(baseline_, agree(rank, baseline_of(rank, carrier_)));
    const TileMemory tiles = carrier_ == Carrier::callers_memory ? TileMemory::callers
                             : carrier_ == Carrier::registered   ? TileMemory::registered
                                                                 : TileMemory::allocated;
    Storages storages;
    if (!moved_.permute.empty())
        storages.source = permuted(row_major(tile(moved_.source, rank.index())), moved_.permute);
    RESHARD_ASSIGN(mover_, Session::make(rank, baseline_ ? *baseline_ : rank.backend(), *plan_, storages, tiles));
    score_.register_seconds = largest(rank, std::vector<double>{mover_->register_seconds()}).front();
    const Layout& source = moved_.permute.empty() ? plan_->plan().source : moved_.source;
    return agree(rank, fill(*values_, source, rank.index(), false, mover_->source(), progress));
}

Result<double> Contestant::move_and_look(Rank& rank, Progress& progress) {
    mover_->wipe();
    const auto seconds = mover_->move(rank);
    if (!seconds) return seconds;
    const auto wanted = changed(*values_, {moved_.source.dtype, plan_->plan().target.dtype, moved_.permute});
    RESHARD_TRY(const auto& verified, verify(rank, *wanted, plan_->plan().target, false, mover_->target(), progress));
    score_.wrong += verified.wrong;
    score_.verified += verified.of;
    return seconds;
}

Result<void> Contestant::take_part(Rank& rank, Progress& progress) {
    RESHARD_CHECK(set_up(rank, progress));
    return move_and_look(rank, progress).map([](double) {});
}

void Contestant::measure_memory(Rank& rank, Progress& progress) {
    if (score_.error) return;
    rank.barrier();
    const ResidentGrowth growth;
    rank.barrier();  // ranks of one process share its memory: all watch before anything is taken
    if (auto made = take_part(rank, progress); made) {
        score_.memory = memory_taken(rank, growth, mover_->accounted());
        score_.target_bytes = sum(rank, {static_cast<Index>(mover_->target().size())}).front();
    } else {
        score_.error = made.error();
    }
    rank.barrier();
    mover_.reset();
    baseline_.reset();
    rank.barrier();
}

void Contestant::take_place(Rank& rank, Progress& progress) {
    if (score_.error) return;
    if (auto made = take_part(rank, progress); !made) score_.error = made.error();
}

void Contestant::round(Rank& rank, Progress& progress) {
    if (score_.error) return;
    const auto seconds = move_and_look(rank, progress);
    if (seconds) {
        score_.seconds.push_back(*seconds);
    } else {
        score_.error = seconds.error();
    }
}

}  // namespace reshard::cli
