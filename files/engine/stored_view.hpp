// Stored boxes of a tensor in a view: the same elements in more dimensions.
#pragma once

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// The boxes of a stored box in a view of its tensor, whose shape splits dimensions of `shape` or adds some of one
/// index. A side that begins or ends within a row of a split dimension becomes up to three sides. A view of one
/// dimension has all elements in row-major order, and a box becomes one box for each of its runs.
[[nodiscard]] std::vector<StoredBox> in_view(const StoredBox& stored, std::span<const Index> shape,
                                             std::span<const Index> view);

/// The tensor in a view.
[[nodiscard]] StoredTensor in_view(const StoredTensor& tensor, std::span<const Index> view);

}  // namespace reshard::files
