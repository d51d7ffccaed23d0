// Best-first search over placements of digits: slices, gathers, all-to-alls and permutes on one network level.
#pragma once

#include "reshard/planner/step.hpp"
#include "synth/search/digit_space.hpp"
#include "synth/search/search.hpp"

namespace reshard {

struct DigitsFound {
    DigitPath path;
    bool arrived = false;
    bool complete = false;  ///< no path of these digits costs less
    EdgeCost price;         ///< of the path
    Index states = 0;       ///< states expanded
};

/// True if the prices of a digit search are the judge's: one level, without a rate for each pair of devices.
[[nodiscard]] bool prices_digits(Objective objective, const Machine& machine);

/// A*. Twins are interchangeable, so only one of their orders is a state.
/// pre: prices_digits(options.objective, machine).
[[nodiscard]] DigitsFound search_digits(const DigitSpace& space, const SearchOptions& options, const Machine& machine);

}  // namespace reshard
