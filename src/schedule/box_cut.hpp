// A box cut into smaller ones, the same on every rank.
#pragma once

#include <vector>

#include "reshard/planner/tile.hpp"

namespace reshard {

/// Boxes of at most so many elements (at least one) that make up a box, one after another in row-major order: slabs, as
/// even as can be, of the outermost dimension that must be cut. An empty box has none. Boxes of one shape are cut
/// alike.
class Slabs {
public:
    Slabs(const Box& box, Index elements_max);
    [[nodiscard]] const Box* next();  ///< until the next call; null after the last

private:
    [[nodiscard]] Interval part(Index number) const;
    [[nodiscard]] bool next_outer();

    Box box_;
    Box slab_;
    std::size_t cut_ = 0;  // the dimension that is cut; those before it are taken index by index
    Index parts_ = 1;      // of it
    Index number_ = 0;     // the next of them
};

[[nodiscard]] std::vector<Box> slabs(const Box& box, Index elements_max);  ///< all of them

}  // namespace reshard
