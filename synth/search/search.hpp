// Best-first search over the typed steps of the vocabulary: the shortest path from source to target in digits.
#pragma once

#include "synth/search/edge_cost.hpp"

namespace reshard {

/// Moves that a search with sums looks at, for bytes or steps: of four digits and three dimensions all.
inline constexpr Index sums_hops_max = 50'000;

struct SearchOptions {
    Objective objective = Objective::bytes;
    Vocabulary vocabulary = Vocabulary::collectives;
    Index tile_max = index_max;            ///< elements: the memory bound
    Index hops_max = 20'000;               ///< moves looked at before it gives up
    EdgeCost below{index_max, index_max};  ///< what costs as much is not looked at
};

struct Found {
    std::vector<Step> steps;
    bool arrived = false;
    bool complete = false;       ///< nothing cheaper exists in these digits, by the exchanges that were looked at
    bool all_exchanges = false;  ///< none that could be better was left out
    bool exact_prices = false;   ///< each that was looked at is the judge's
    EdgeCost price;              ///< of the steps, which is what the judge's numbers add up to where sizes divide
    Index states = 0;            ///< states expanded
};

/// A* with least_to_target as the heuristic. Ties go to fewer moves between devices, then to the earlier state, so that
/// the answer is the same everywhere. On one network level only the cheapest states of each shape try permutes, since
/// the others pay as much for theirs. Exchanges reach the target; for the least time also states that a gather
/// completes; and with sums or several levels every state, if these are not too many. If they reach every state, one
/// exchange between two changes of summands is the least in bytes and steps, so the search tries no other move there.
/// On several levels moves wait for their prices until none has a lower bound.
[[nodiscard]] Found search(const SearchSpace& frame, const SearchOptions& options, const Machine& machine);

}  // namespace reshard
