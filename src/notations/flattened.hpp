// Tiles that are flattened and then cut anywhere, as the optimizer states of Megatron-LM and veScale are.
#pragma once

#include "reshard/layout.hpp"

namespace reshard::notation {

/// The dimensions as one, row-major. The tile of each of their shards is flattened and cut once more: digit value i of
/// `axis` gets units[i] of all units, in order. The numbers of the shards are the most major digits.
/// Errors: layout (the units do not divide a tile), overflow, unsupported (2^22 pieces).
[[nodiscard]] Result<Dim> flattened(std::span<const Dim> dims, Atom axis, std::span<const Index> units);

}  // namespace reshard::notation
