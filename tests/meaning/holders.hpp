// What a draft means, by counting: who holds which elements, and of which summand. The other side of every comparison;
// nothing here asks the library anything.
#pragma once

#include "meaning/draft.hpp"

namespace reshard::test {

/// What one device holds: numbers of elements of the whole array, row-major, in the order in which they lie in its
/// tile; so that a reshape changes none of them.
struct Holder {
    bool within = false;  ///< of the mesh
    std::vector<Index> elements;
    Index summand = 0;
    friend bool operator==(const Holder&, const Holder&) = default;
};

/// One more than the largest device of either end.
[[nodiscard]] Index world_of(const Draft& draft);

/// Per device, from 0 up to below `world`.
[[nodiscard]] std::vector<Holder> holders(const End& end, Index world);

/// Which shard of the dimension an index belongs to.
[[nodiscard]] Index owner(const DraftDim& dim, Index index);

/// The coordinate of a position of the mesh on a part of an axis.
[[nodiscard]] Index coordinate(const DraftMesh& mesh, const Part& part, Index position);

/// Mixed-radix number of coordinates, the first part most major.
[[nodiscard]] Index number_on(const DraftMesh& mesh, const std::vector<Part>& parts, Index position);

/// The unreduced parts in the order in which summands are numbered: as in the mesh.
[[nodiscard]] std::vector<Part> summing_parts(const End& end);

[[nodiscard]] Index device_of(const DraftMesh& mesh, Index position);
[[nodiscard]] Index summands(const End& end);
[[nodiscard]] Index elements_in_all(const End& end);
[[nodiscard]] bool with_sums(const Draft& draft);  ///< at either end
[[nodiscard]] bool divides(const End& end);        ///< all tiles have one shape
[[nodiscard]] Index largest_tile(const std::vector<Holder>& all);

}  // namespace reshard::test
