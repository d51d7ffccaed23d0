// One dimension of the cells that a device holds. A shard holds the same cells on all its devices.
#pragma once

#include <span>

#include "reshard/halo/halo.hpp"

namespace reshard {

/// A HaloLayout that refers to its parts: the rounds of a fill share one layout and have their own halos.
struct HaloView {
    const Layout& owned;
    std::span<const Halo> halos;
    HaloView(const Layout& layout, std::span<const Halo> list) : owned(layout), halos(list) {}
    HaloView(const HaloLayout& layout) : owned(layout.owned), halos(layout.halos) {}
};

/// The cells of a shard, as in held_cells. Empty if the shard owns nothing.
[[nodiscard]] Side held_side(const HaloView& layout, std::size_t dim, Index shard);
/// The cells of a shard with only one cell for each element, as in distinct_cells. Empty if the shard owns nothing.
[[nodiscard]] Side distinct_side(const HaloView& layout, std::size_t dim, Index shard);
/// As distinct_cells of a HaloLayout.
[[nodiscard]] Tile distinct_cells(const HaloView& layout, Index device);

}  // namespace reshard
