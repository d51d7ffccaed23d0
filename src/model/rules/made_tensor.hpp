// A tensor of the target, while its parts are found, and its shape.
#pragma once

#include "src/model/rules/rule_layout.hpp"
#include "src/model/rules/taken_part.hpp"

namespace reshard::notation {

/// A tensor that a line of the target makes.
struct Made {
    std::size_t rule = 0;
    Bindings names;                           ///< of the rule's pattern, in its order
    std::vector<std::optional<Taken>> parts;  ///< of a stack: the parts of its first place come first
    std::vector<Index> copies = {};           ///< of the heads of each part; empty: once
    std::vector<Index> heads = {};            ///< indices of a head of each part
    std::vector<Index> extents = {};          ///< of each part that is cut by itself, with its padding
    PartsOfDims dim_parts = {};               ///< the parts of each dimension
    std::vector<Stretches> held = {};         ///< as ShardedTensor::held
};

/// Returns the element type and the shape of a tensor from all its parts. They follow each other in one dimension, or
/// are stacked in a new first one. `name` is the name of the tensor. Errors, with the line and the place: mismatch (a
/// part is missing, or does not fit the others); unsupported (a cast between types that cannot be cast).
[[nodiscard]] Result<Asked> made_shape(const Made& made, const Rule& rule, std::string_view name,
                                       std::span<const ListedTensor> tensors);

/// Returns the parts of each dimension that have blocks of their own. Fused parts have, also if they are cut as one.
[[nodiscard]] PartsOfDims parts_with_blocks(const Made& made, const Rule& rule);

}  // namespace reshard::notation
