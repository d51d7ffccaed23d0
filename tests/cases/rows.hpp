// Rows of the peers' tables as problems.
#pragma once

#include <optional>

#include "reshard/synthesize.hpp"
#include "support/jsonl.hpp"

namespace reshard::test {

/// DTensor's placements on a mesh of sizes; nullopt for strided and other placements, device orders, ragged meshes.
[[nodiscard]] std::optional<Problem> problem_of_dtensor(const Json& row);

/// XLA's HloSharding text; nullopt for shardings that are not tilings of all devices in a transposed order.
[[nodiscard]] std::optional<Problem> problem_of_xla(const Json& row);

}  // namespace reshard::test
