// Arrays that are summed over some axes and averaged over others: planned as sums, which move alike, and divided then.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// True when an end is summed over some axes and averaged over others.
[[nodiscard]] bool averages_in_part(const Problem& problem);

/// The same layout with its summands summed and not divided. pre: they are summed, or there are none.
[[nodiscard]] Layout as_sums(Layout layout);

/// A plan between the ends as sums becomes one between the ends: reductions divide as soon as they must. False where
/// the divisors of the ends do not meet.
[[nodiscard]] bool divide(Plan& plan, const Problem& problem);

}  // namespace reshard
