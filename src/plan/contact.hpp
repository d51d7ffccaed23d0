// Which tiles of two cuts of one dimension have indices in common, and how many.
#pragma once

#include <span>

#include "reshard/layout.hpp"

namespace reshard {

/// A tile of the other cut.
struct Met {
    Index tile = 0;
    Index indices = 0;  ///< in common, at least 1
};

/// For each tile of one cut those of the other that it meets, ascending.
class Meetings {
public:
    /// From meetings in ascending order of (one, other), none twice.
    struct Pair {
        Index one = 0;
        Index other = 0;
        Index indices = 0;
    };
    Meetings() = default;
    Meetings(Index tiles, std::span<const Pair> pairs);

    [[nodiscard]] std::span<const Met> of(Index tile) const {
        const auto at = static_cast<std::size_t>(tile);
        return std::span(met_).subspan(begins_[at], begins_[at + 1] - begins_[at]);
    }

private:
    std::vector<std::size_t> begins_;
    std::vector<Met> met_;
};

/// The indices in common with a tile, of the list of one that meets it or not; 0 where it does not.
[[nodiscard]] Index met_in(std::span<const Met> list, Index tile);

/// Both cuts of a dimension. Linear in their pieces.
struct Contact {
    Contact(const Dim& before, const Dim& after);

    Meetings held;                    ///< by tile before: tiles after
    Meetings wanted;                  ///< by tile after: tiles before
    std::vector<Index> held_sizes;    ///< indices of each tile before
    std::vector<Index> wanted_sizes;  ///< indices of each tile after
    Index most = 0;                   ///< indices in common, of any two tiles
    bool nested = false;              ///< of those that a tile meets all but the first and the last lie inside it
};

}  // namespace reshard
