// Candidates for one question, judged; the cheapest is the answer.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// The problem as it stands: no end is written in another order of devices here.
/// pre: valid layouts of one array, can_count, summands of one reduction at most, first steps that are typed, rules
/// that there are.
[[nodiscard]] Result<Synthesis> answer(const Problem& problem, const Options& options);

/// The steps of the best plan found between two ends in one order of devices, whatever it holds; none when there is no
/// plan.
[[nodiscard]] std::vector<Step> steps_in_one_order(const Problem& problem, Options options);

}  // namespace reshard
