// XLA's HloSharding as it is written. Its grammar stands at the head of src/notations/hlo.cpp.
#pragma once

#include "reshard/text.hpp"

namespace reshard {

/// An HloSharding as it is written, also where it is no layout: a tuple, manual subgroups, unknown.
struct HloSharding {
    /// What its braces say.
    enum class Kind { replicated, maximal, manual, unknown, unreduced, tiled, tuple, named };
    /// What a tile dimension beyond those of the array is.
    enum class Subgroup { manual, replicated, unreduced };
    Kind kind = Kind::replicated;          ///< decides which fields below mean something
    Index device = 0;                      ///< of maximal
    std::vector<Index> tiles;              ///< tiled: per dimension, then one per subgroup
    std::vector<Subgroup> subgroups;       ///< what the last tile dimensions are
    std::vector<Index> devices;            ///< V1: in row-major order of the tiles; else
    std::vector<Index> reshape;            ///< V2: 0, 1, ... in this shape,
    std::vector<Index> transpose;          ///< with axes in this order; empty for one axis
    std::vector<HloSharding> elements;     ///< tuple
    std::optional<Mesh> mesh;              ///< V3
    std::vector<AtomList> dims;            ///< V3
    AtomList partial;                      ///< V3: unreduced axes
    Reduction reduction = Reduction::sum;  ///< of the unreduced ones
    friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

/// V1, V2, V3 and tuples. Errors: syntax, layout, mesh.
[[nodiscard]] Result<HloSharding> parse_hlo(std::string_view text);
/// The text that parse_hlo reads.
[[nodiscard]] std::string format(const HloSharding& sharding);

}  // namespace reshard
