// The times of the pieces of a run: alone, and one behind the other.
#pragma once

#include "reshard/planner/cost.hpp"

namespace reshard {

/// The time of a piece in picoseconds: a constant, and a part of `whole` by its part of the run's indices.
struct PieceTime {
    Index once = 0;
    Index whole = 0;
    friend bool operator==(const PieceTime&, const PieceTime&) = default;
};

/// The time of this many pieces, which together have `indices` of `block`. pre: 0 <= indices <= block.
[[nodiscard]] Index picoseconds_of(const PieceTime& time, Index pieces, Index indices, Index block);

/// The first piece takes `alone`, each further one the longest of `behind`.
struct RunTimes {
    PieceTime alone;
    std::vector<PieceTime> behind;  // at least one
};

/// Which of them is the longest where a run has so many pieces. pre: there is one.
[[nodiscard]] const PieceTime& longest(const std::vector<PieceTime>& times, Index pieces);

/// The times of a run in pieces. Pieces run one after the other if `steps_overlap` is false, and in plans with one step
/// that moves. That is a split run, or pieces that overlap only with work. pre: verdict = check(plan, split).
[[nodiscard]] RunTimes run_times(const Plan& plan, const Split& split, const Verdict& verdict, const Machine& machine,
                                 bool steps_overlap);

/// By level, the transfer time of the device that is busiest in all steps together. It is the same however a plan is
/// cut.
[[nodiscard]] std::vector<Index> busy_levels(const Plan& plan, const Verdict& verdict, const Machine& machine);

/// run_times where steps overlap, from the plan's busy_levels. pre: several steps move, and all leave the split's
/// blocks together.
[[nodiscard]] RunTimes overlapped_times(const Plan& plan, const Split& split, const Verdict& verdict,
                                        const Machine& machine, const std::vector<Index>& busy);

/// When each piece has arrived, after the start of the run and in the order of travel.
[[nodiscard]] std::vector<Index> arrivals(const RunTimes& times, const Split& split);

/// The time of all pieces of the split.
[[nodiscard]] Index picoseconds_of(const RunTimes& times, const Split& split);

}  // namespace reshard
