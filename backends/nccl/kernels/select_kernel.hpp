// Loop nests with addresses, as boxes of the kernels that run them best.
#pragma once

#include <map>

#include "backends/nccl/kernels/kernels.hpp"
#include "src/copy/copy.hpp"

namespace reshard::nccl {

/// Loops are in the memory order of the target, outermost first.
struct Nest {
    const std::byte* source;
    std::byte* target;
    Index element_bytes;
    std::vector<LoopNest::Loop> loops;
};

/// Boxes by kernel, with the number of blocks that they need.
using Boxes = std::map<Kernel, std::vector<std::pair<DeviceBox, Index>>>;

/// Uses rows, as wide as addresses and strides allow, if source and target run along the same dimension. Uses tiles if
/// each runs along its own, and single elements otherwise. A box that a kernel cannot count or walk is split.
void emit_copy(const Nest& nest, Boxes& boxes);
void emit_fill(const Nest& nest, const Pattern& pattern, Boxes& boxes);

/// target = fold(target, source). In a scale both are the same. Errors: mismatch if elements are not aligned.
[[nodiscard]] Result<void> emit_fold(const Nest& nest, DType dtype, Fold fold, Scale scale, Boxes& boxes);

}  // namespace reshard::nccl
