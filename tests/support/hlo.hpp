// Enough of XLA's HloSharding text for its test cases: {replicated} and {devices=[..]<=[..]T(..)}.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard::test {

/// The layout on a mesh of one axis of so many devices; nullopt for other kinds of shardings. Devices are numbered as
/// the text numbers them, so a transposed iota becomes parts of the axis in another order.
[[nodiscard]] std::optional<Layout> layout_of_hlo(const std::string& text, DType dtype, const std::vector<Index>& shape,
                                                  Index devices);

}  // namespace reshard::test
