// The answer to one question: the stages of its row of the policy propose candidates, and the cheapest wins.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// Answers the problem as it stands, without another order of devices for either end.
/// pre: valid layouts of one array, check_enumerable, summands of at most one reduction, typed first steps, known
/// rules.
[[nodiscard]] Result<Synthesis> answer(const Problem& problem, const Options& options);

}  // namespace reshard
