// Lowering behind the judge.
#pragma once

#include "reshard/execute.hpp"

namespace reshard {

/// As lower. pre: the judge has passed the plan, and there is such a rank.
[[nodiscard]] Result<RankPlan> lower_judged(const Plan& plan, Index rank, const Storages& storages,
                                            const MemoryPolicy& memory = {});

}  // namespace reshard
