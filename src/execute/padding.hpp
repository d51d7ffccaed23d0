// The elements of one rank's target tile that have no element in the source.
#pragma once

#include <span>
#include <vector>

#include "reshard/backends/backend.hpp"

namespace reshard {

/// The padding of a dense row-major tile: all elements but the first `kept` indices in each dimension.
struct Padding {
    std::vector<Index> extents = {};      ///< of the tile
    std::vector<Index> kept = {};         ///< the indices that a move writes
    std::vector<std::byte> element = {};  ///< the bytes of one element

    /// Fills the padding of a tile in the program's own memory. pre: `tile` has as many elements as the extents say.
    void fill(std::span<std::byte> tile) const;
    /// The same for a tile in memory of the backend.
    [[nodiscard]] Result<void> fill_on(Backend& backend, std::span<std::byte> tile) const;

private:
    [[nodiscard]] Slot slot() const;
    [[nodiscard]] std::vector<Box> boxes() const;
};

/// The padding of this rank's tile of `target`. No bytes for an element are zeros. pre: `source` has as many
/// dimensions, in the order of the target's.
[[nodiscard]] Padding padding_of(const Layout& source, const Layout& target, Index rank,
                                 std::span<const std::byte> element);

/// Checks that the bytes are one element of the layout, or none. Errors: mismatch.
[[nodiscard]] Result<void> is_element_of(const Layout& layout, std::span<const std::byte> element);

}  // namespace reshard
