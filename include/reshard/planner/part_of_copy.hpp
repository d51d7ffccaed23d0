// Casts that copies carry out.
#pragma once

#include "reshard/plan.hpp"

namespace reshard {

/// True if the step is a cast that the copy next to it carries out: that copy reads elements of one type and writes
/// elements of the other. The cast then writes no tile. A cast is part of the copy behind it, or else of the copy
/// before it. Sums and fills carry out no cast, and neither do slices and views. pre: step < the number of steps.
[[nodiscard]] bool is_part_of_copy(const Plan& plan, std::size_t step);

}  // namespace reshard
