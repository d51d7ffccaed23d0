// Arrays that are summed over some axes and averaged over others. They are planned as sums, and divided afterwards.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// True when an end is summed over some axes and averaged over others.
[[nodiscard]] bool averages_in_part(const Problem& problem);

/// The same layout with its summands summed and not divided. pre: the layout has sums or no summands.
[[nodiscard]] Layout as_sums(Layout layout);

/// Turns a plan between the ends as sums into one between the ends: reductions divide as soon as they must. False if
/// the divisors of the ends do not fit.
[[nodiscard]] bool divide(Plan& plan, const Problem& problem);

}  // namespace reshard
