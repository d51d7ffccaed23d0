// The meaning of a draft by counting: the elements of each device, and their summand. It is the other side of every
// comparison and does not use the library.
#pragma once

#include "meaning/draft.hpp"

namespace reshard::test {

/// The elements of one device: their row-major numbers in the whole array, in the order of its tile. A reshape changes
/// none of these numbers.
struct Holder {
    bool within = false;  ///< true: in the mesh
    std::vector<Index> elements;
    Index summand = 0;
    friend bool operator==(const Holder&, const Holder&) = default;
};

/// One more than the largest device of either end.
[[nodiscard]] Index world_of(const Draft& draft);

/// The holder for each device in [0, world).
[[nodiscard]] std::vector<Holder> holders(const End& end, Index world);

/// The shard that owns an index of the dimension.
[[nodiscard]] Index owner(const DraftDim& dim, Index index);

/// The coordinate of a mesh position on a part of an axis.
[[nodiscard]] Index coordinate(const DraftMesh& mesh, const Part& part, Index position);

/// The mixed-radix number of the coordinates, the first part most major.
[[nodiscard]] Index number_on(const DraftMesh& mesh, const std::vector<Part>& parts, Index position);

/// The unreduced parts in mesh order. Summands are numbered in this order.
[[nodiscard]] std::vector<Part> summing_parts(const End& end);

[[nodiscard]] Index device_of(const DraftMesh& mesh, Index position);
[[nodiscard]] Index summands(const End& end);
[[nodiscard]] Index elements_in_all(const End& end);
[[nodiscard]] bool with_sums(const Draft& draft);  ///< true: some end has summands
[[nodiscard]] bool divides(const End& end);        ///< true: all tiles have one shape
[[nodiscard]] Index largest_tile(const std::vector<Holder>& all);

}  // namespace reshard::test
