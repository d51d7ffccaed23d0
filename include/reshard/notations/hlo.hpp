// XLA's HloSharding as it is written. src/notations/hlo.cpp has the grammar at its head.
#pragma once

#include "reshard/text.hpp"

namespace reshard {

/// An HloSharding as it is written. It need not be a layout: it may be a tuple, unknown, or have manual subgroups.
struct HloSharding {
    /// The kind of sharding in the braces.
    enum class Kind { replicated, maximal, manual, unknown, unreduced, tiled, tuple, named };
    /// The kind of a tile dimension beyond the dimensions of the array.
    enum class Subgroup { manual, replicated, unreduced };
    Kind kind = Kind::replicated;          ///< decides which fields below mean something
    Index device = 0;                      ///< maximal: the device
    std::vector<Index> tiles;              ///< tiled: tiles per dimension, then per subgroup
    std::vector<Subgroup> subgroups;       ///< kinds of the last tile dimensions
    std::vector<Index> devices;            ///< V1: in row-major order of the tiles; V2: empty
    std::vector<Index> reshape;            ///< V2: devices 0, 1, ... in this shape,
    std::vector<Index> transpose;          ///< with axes in this order; empty for one axis
    std::vector<HloSharding> elements;     ///< tuple: its elements
    std::optional<Mesh> mesh;              ///< V3: the mesh
    std::vector<AtomList> dims;            ///< V3: the atoms of each dimension
    AtomList partial;                      ///< V3: unreduced axes
    Reduction reduction = Reduction::sum;  ///< how unreduced summands combine
    friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

/// Parses V1, V2, V3 and tuples. Errors: syntax, layout, mesh.
[[nodiscard]] Result<HloSharding> parse_hlo(std::string_view text);
/// The text that parse_hlo reads.
[[nodiscard]] std::string format(const HloSharding& sharding);

}  // namespace reshard
