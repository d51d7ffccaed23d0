// Random pairs of layouts on one mesh, and random chains of steps, over so many ranks. The same for the same seed.
#pragma once

#include <cstdint>
#include <string>

#include "reshard/plan.hpp"

namespace reshard::test {

/// Four lines, as random_question: mesh, source, the mesh again, target. Every second shape divides by all axes; one of
/// four has summands.
[[nodiscard]] std::string random_pair(std::uint64_t seed, Index ranks);

/// Up to five steps between any layouts, of which the first may be a slice.
[[nodiscard]] Plan random_chain(std::uint64_t seed, Index ranks);

}  // namespace reshard::test
