// The parts of an array that all devices treat in one way.
#pragma once

#include "reshard/boxes/boxes.hpp"

namespace reshard {

/// Elements that the same devices hold and the same devices want.
struct NodeCells {
    std::vector<Index> holders;  ///< ascending
    std::vector<Index> wanters;  ///< ascending, not empty
    std::vector<Box> boxes;      ///< disjoint; each lies within one interval of the tiles of all these devices
    Index elements = 0;          ///< in all boxes
};

/// Returns the parts that somebody wants, for devices [0, devices). Errors: unsupported if there are more than 2^24
/// pairs of a device and a box. pre: valid layouts of one array.
[[nodiscard]] Result<std::vector<NodeCells>> cells_of(const Layout& source, const Layout& target, Index devices);

/// Returns boxes that hold the elements [begin, end) of a part, counted box by box in row-major order.
[[nodiscard]] std::vector<Box> boxes_of_range(const NodeCells& cells, Index begin, Index end);

}  // namespace reshard
