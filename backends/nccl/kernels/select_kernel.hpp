// Turns loop nests with addresses into boxes of the kernels that run them best.
#pragma once

#include <map>

#include "backends/nccl/kernels/kernels.hpp"
#include "src/copy/copy.hpp"

namespace reshard::nccl {

/// Loops are in the order of the target in memory, outermost first.
struct Nest {
    const std::byte* source;
    std::byte* target;
    Index element_bytes;  ///< at the source
    std::vector<LoopNest::Loop> loops;
};

/// Boxes by kernel, each with the number of blocks that it needs.
using Boxes = std::map<Kernel, std::vector<std::pair<DeviceBox, Index>>>;

/// Emits rows if source and target run along the same dimension, as wide as addresses and strides allow. Emits tiles if
/// each runs along its own; otherwise single elements. A box that a kernel cannot count or walk becomes several.
void emit_copy(const Nest& nest, Boxes& boxes);
void emit_fill(const Nest& nest, const Pattern& pattern, Boxes& boxes);

/// Casts elements from one type to the other, several at once if addresses and strides allow. pre: tables::can_cast.
/// Errors: mismatch if elements of either side are not aligned.
[[nodiscard]] Result<void> emit_cast(const Nest& nest, DType from, DType to, Boxes& boxes);

/// target = fold(target, source); for a scale both are the same. Errors: mismatch if elements are not aligned.
[[nodiscard]] Result<void> emit_fold(const Nest& nest, DType dtype, Fold fold, Scale scale, Boxes& boxes);

}  // namespace reshard::nccl
