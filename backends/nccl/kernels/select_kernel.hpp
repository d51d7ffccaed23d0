// Loop nests with addresses, as boxes of the kernels that run them best.
#pragma once

#include <map>

#include "backends/nccl/kernels/kernels.hpp"
#include "src/copy/copy.hpp"

namespace reshard::nccl {

/// Loops are ordered as in memory of the target, outermost first.
struct Nest {
    const std::byte* source;
    std::byte* target;
    Index element_bytes;
    std::vector<LoopNest::Loop> loops;
};

/// Boxes by kernel, with how many blocks they need.
using Boxes = std::map<Kernel, std::vector<std::pair<DeviceBox, Index>>>;

/// Rows where source and target run along the same dimension, as wide as addresses and strides allow; tiles where each
/// runs along its own; else element by element. Boxes that a kernel cannot count or walk become several.
void emit_copy(const Nest& nest, Boxes& boxes);
void emit_fill(const Nest& nest, const Pattern& pattern, Boxes& boxes);

/// target = fold(target, source); of a scale both are the same. Errors: mismatch when elements are not aligned.
[[nodiscard]] Result<void> emit_fold(const Nest& nest, DType dtype, Fold fold, Scale scale, Boxes& boxes);

}  // namespace reshard::nccl
