// The indices of one dimension that two tiles share, folded by their period (FALLS and PITFALLS, Ramaswamy and
// Banerjee, 1995: a block-cyclic cut is a nested arithmetic sequence of segments).
#pragma once

#include <vector>

#include "reshard/planner/tile.hpp"

namespace reshard {

/// Consecutive indices of both tiles, counted in each tile's own indices.
struct Segment {
    Index source = 0;  ///< own index in the source tile of the first
    Index target = 0;  ///< the same in the target tile
    Index length = 1;  ///< indices
    friend bool operator==(const Segment&, const Segment&) = default;
};

/// Equal segments at a constant distance on each side.
struct Repeat {
    Index count = 1;
    Index source_step = 0;  ///< own indices from one to the next
    Index target_step = 0;
    friend bool operator==(const Repeat&, const Repeat&) = default;
};

/// A segment, repeated in two nested loops.
struct Progression {
    Segment first;
    Repeat outer;
    Repeat inner;
};

/// The segments, with segments that continue each other in both tiles as one. pre: ascending in the target.
[[nodiscard]] std::vector<Segment> joined(std::vector<Segment> segments);

/// Into how many loops a row may put the repeats of a dimension.
enum class Folding { one_loop, two_loops };

/// The segments of `common`, ascending. Segments that continue each other in both tiles are one.
/// pre: `common` is a part of intersect(source, target).
[[nodiscard]] std::vector<Segment> segments_of(const Side& common, const Side& source, const Side& target);

/// Folds segments, ascending in the target, into the fewest progressions, or into the progressions that become the
/// fewest rows with one loop. The number of progressions is the number of different segments in a period, plus the
/// segments that a border cuts. Cost: linear in the segments if they have a period.
[[nodiscard]] std::vector<Progression> fold(const std::vector<Segment>& segments, Folding folding);

/// The number of rows with one loop that the progressions become.
[[nodiscard]] Index flat_rows(const std::vector<Progression>& progressions);

/// The common indices of one dimension of a part: segments_of, then fold.
[[nodiscard]] std::vector<Progression> fold(const Side& common, const Side& source, const Side& target,
                                            Folding folding);

}  // namespace reshard
