// Candidates for one question, judged; the cheapest is the answer.
#pragma once

#include "reshard/synthesize.hpp"

namespace reshard {

/// The problem as it stands: no end is written in another order of devices here.
/// pre: valid layouts of one array, can_count, summands of one reduction at most, first steps that are typed.
[[nodiscard]] Result<Synthesis> answer(const Problem& problem, const Options& options);

}  // namespace reshard
