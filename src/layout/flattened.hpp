// Tiles that are flattened and then cut anywhere, as the optimizer states of Megatron-LM and veScale are.
#pragma once

#include "reshard/layout.hpp"

namespace reshard {

/// The dimensions as one, row-major. The tile of each of their shards is flattened and cut once more: shard i of `axes`
/// gets units[i] of all units, in order. The numbers of the shards of `dims` are the most major digits.
/// Errors: layout (not one unit for each shard, no units, units that do not divide a tile), overflow, unsupported
/// (2^22 pieces).
[[nodiscard]] Result<Dim> flattened(std::span<const Dim> dims, const AtomList& axes, std::span<const Index> units);

/// The arguments of `flattened`.
struct Flattened {
    std::vector<Dim> dims;
    AtomList axes;
    std::vector<Index> units;
};

/// Arguments from which `flattened` makes the dimension. They need not be the original ones: an extent may be missing
/// that every device holds whole. nullopt if there are none, or if the cut has a simpler form.
[[nodiscard]] std::optional<Flattened> unflattened(const Dim& dim);

}  // namespace reshard
