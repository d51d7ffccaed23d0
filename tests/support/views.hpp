// Plans with views: some steps see the array in another shape.
#pragma once

#include <cstdint>

#include "reshard/plan.hpp"

namespace reshard::test {

/// The plan with a run of its steps written in a view: each dimension as one part or several. The parts divide every
/// layout of the run. The same plan if no dimension has parts. Equal seeds give equal results.
[[nodiscard]] Plan with_views(const Plan& plan, std::uint64_t seed);

}  // namespace reshard::test
