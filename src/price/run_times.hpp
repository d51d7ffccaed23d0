// What the pieces of a run take: by themselves, and behind each other.
#pragma once

#include "reshard/planner/cost.hpp"

namespace reshard {

/// What a piece takes, in picoseconds: something once, and of `whole` the part that it has of the run's indices.
struct PieceTime {
    Index once = 0;
    Index whole = 0;
    friend bool operator==(const PieceTime&, const PieceTime&) = default;
};

/// Of so many pieces that together have `indices` of `block`. pre: 0 <= indices <= block.
[[nodiscard]] Index picoseconds_of(const PieceTime& time, Index pieces, Index indices, Index block);

/// The first piece takes `alone`, each further one the longest of `behind`.
struct RunTimes {
    PieceTime alone;
    std::vector<PieceTime> behind;  // at least one
};

/// Which of them is the longest where a run has so many pieces. pre: there is one.
[[nodiscard]] const PieceTime& longest(const std::vector<PieceTime>& times, Index pieces);

/// Of a run in pieces. Where `steps_overlap` is false, and in plans of one step that moves, pieces come one after the
/// other: a split run, or pieces that overlap but with work. pre: verdict = check(plan, split).
[[nodiscard]] RunTimes run_times(const Plan& plan, const Split& split, const Verdict& verdict, const Machine& machine,
                                 bool steps_overlap);

/// By level, the picoseconds of the bytes of whoever is busiest in all steps together: the same however a plan is cut.
[[nodiscard]] std::vector<Index> busy_levels(const Plan& plan, const Verdict& verdict, const Machine& machine);

/// run_times where steps overlap, from the plan's busy_levels. pre: several steps move, and all leave the split's
/// blocks together.
[[nodiscard]] RunTimes overlapped_times(const Plan& plan, const Split& split, const Verdict& verdict,
                                        const Machine& machine, const std::vector<Index>& busy);

/// Of all pieces of the split.
[[nodiscard]] Index picoseconds_of(const RunTimes& times, const Split& split);

}  // namespace reshard
