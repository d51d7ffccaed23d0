// Stored boxes of a tensor in a view: the same elements in another shape.
#pragma once

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

/// The boxes of a stored box in a view of its tensor. The view splits and merges dimensions of `shape`. A side that
/// begins or ends within a row of a split dimension becomes up to three sides. If merged dimensions are not contiguous
/// in the file, each run is a box. pre: both shapes have as many elements.
[[nodiscard]] std::vector<StoredBox> in_view(const StoredBox& stored, std::span<const Index> shape,
                                             std::span<const Index> view);

/// The tensor in a view.
[[nodiscard]] StoredTensor in_view(const StoredTensor& tensor, std::span<const Index> view);

}  // namespace reshard::files
