// The effect of a step on the axis lists of two layouts in one device order.
#pragma once

#include "reshard/layout.hpp"

namespace reshard {

/// Suffixes that left dimensions and suffixes that entered.
struct AxisDelta {
    AtomList left;         // as a set
    AtomList entered;      // as a set
    bool prefixes = true;  // in every dimension one list is a prefix of the other
    bool nests = true;     // and where the lists differ, the boundaries of the tiles nest
};

/// pre: same shape, same_order.
[[nodiscard]] AxisDelta change_of(const Layout& before, const Layout& after);

}  // namespace reshard
