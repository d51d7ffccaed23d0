// Random exchanges of boxes, and the oracle: each element is looked up by its number, by arithmetic of its own.
#pragma once

#include <map>
#include <string>

#include "reshard/boxes/exchange.hpp"
#include "support/random_bytes.hpp"

namespace reshard::conformance {

/// Boxes of all ranks, and where each rank keeps them.
struct DrawnBoxes {
    BoxTable table;
    std::vector<BoxStorages> storages;  ///< by rank; empty lists: one box after another
    std::size_t arrays = 1;
    bool known = false;  ///< every rank knows the table
};

/// Owners come from random cuts of the array into boxes. Some boxes have no owner, and some ranks own nothing. Wants
/// are owned boxes with cells around them, boxes nested in owned ones, or any boxes.
[[nodiscard]] DrawnBoxes draw_boxes(test::Random& random, Index ranks);

/// Row-major numbers of the elements of a box, in row-major order.
[[nodiscard]] std::vector<Index> numbers_in(const std::vector<Index>& shape, const Box& box);
/// The place in the buffer of each element of each box, as (number of the element, place), box by box in row-major
/// order.
[[nodiscard]] std::vector<std::pair<Index, Index>> places_in(const std::vector<Index>& shape,
                                                             const std::vector<Box>& boxes,
                                                             const std::vector<Storage>& storages);
/// The rank that owns each element.
[[nodiscard]] std::map<Index, Index> owners_of(const BoxTable& table);

[[nodiscard]] std::string describe(const DrawnBoxes& drawn);

}  // namespace reshard::conformance
