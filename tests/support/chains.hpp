// Random pairs of layouts on one mesh, and random chains of steps, over `ranks` ranks. Equal seeds give equal results.
#pragma once

#include <cstdint>
#include <string>

#include "reshard/plan.hpp"

namespace reshard::test {

/// Four lines as in random_question: mesh, source, the mesh again, target. One shape in two divides by all axes; one in
/// four has summands.
[[nodiscard]] std::string random_pair(std::uint64_t seed, Index ranks);

/// Up to five steps between any layouts, and views in one plan of three. The first step may be a slice.
[[nodiscard]] Plan random_chain(std::uint64_t seed, Index ranks);

}  // namespace reshard::test
