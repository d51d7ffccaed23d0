#include "src/plan/axis_delta.hpp"

#include <cassert>

namespace reshard {

namespace {

// Every tile of the longer list lies within one tile of the shorter: exactly `factor` of them make one up, or the
// shorter list's first tile is the whole dimension. In other cuts: the longer one, made coarser, is the shorter one.
bool boundaries_nest(const Dim& shorter, const Dim& longer, const AtomList& suffix) {
    const Index factor = combinations(suffix);
    if (!by_ceil_div(shorter) || !by_ceil_div(longer))
        return same_cut(coarsened(longer, shorter.atoms, factor), shorter);
    return block_extent(shorter) == shorter.extent ||
           checked_multiply(block_extent(longer), factor) == block_extent(shorter);
}

}  // namespace

AxisDelta change_of(const Layout& before, const Layout& after) {
    assert(before.dims.size() == after.dims.size() && same_order(before.mesh, after.mesh));
    AxisDelta change;
    for (std::size_t i = 0; i < before.dims.size(); ++i) {
        const Dim& b = before.dims[i];
        const Dim& a = after.dims[i];
        if (const auto entered = after_prefix(a.atoms, b.atoms)) {
            change.entered.insert(change.entered.end(), entered->begin(), entered->end());
            change.nests = change.nests && (b == a || boundaries_nest(b, a, *entered));
        } else if (const auto left = after_prefix(b.atoms, a.atoms)) {
            change.left.insert(change.left.end(), left->begin(), left->end());
            change.nests = change.nests && boundaries_nest(a, b, *left);
        } else {
            change.prefixes = false;
        }
    }
    change.left = as_set(std::move(change.left));
    change.entered = as_set(std::move(change.entered));
    return change;
}

}  // namespace reshard
