// Best-first search over placements of digits: slices, gathers, all-to-alls and permutes.
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

/// True if the price of a step depends on the levels that it crosses: the time on several levels, or with a rate for
/// each pair of devices.
[[nodiscard]] bool depends_on_levels(Objective objective, const Machine& machine);

/// True if the prices of a digit search are the judge's: on several levels, if no block of the machine parts a digit.
[[nodiscard]] bool prices_digits(const DigitSpace& space, Objective objective, const Machine& machine);

/// A*. Twins are interchangeable, so only one of their orders is a state. On several levels the price of a permute may
/// be a lower bound. pre: prices_digits(space, options.objective, machine).
[[nodiscard]] DigitsFound search_digits(const DigitSpace& space, const SearchOptions& options, const Machine& machine);

}  // namespace reshard
