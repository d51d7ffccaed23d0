// Which tiles of two cuts of one dimension have indices in common, and how many.
#pragma once

#include <algorithm>
#include <span>

#include "src/layout/regular_cut.hpp"

namespace reshard {

/// A tile of the other cut.
struct Met {
    Index tile = 0;
    Index indices = 0;  ///< in common, at least 1
};

/// The tiles of a cut that one tile of another meets, ascending.
class MetTiles {
public:
    /// Those of a list.
    explicit MetTiles(std::span<const Met> list) : list_(list) {
        if (list.empty()) return;
        first_ = list.front().tile;
        last_ = list.back().tile;
        gaps_ = last_ - first_ + 1 != std::ssize(list);
    }
    /// The tiles of a cut that meet an interval.
    MetTiles(Interval part, const RegularCut& cut) : part_(part), cut_(cut), regular_(true) {
        if (part.begin >= part.end) return;
        first_ = cut.shard_of(part.begin);
        last_ = cut.shard_of(part.end - 1);
    }

    [[nodiscard]] bool empty() const { return last_ < first_; }
    [[nodiscard]] Index first() const { return first_; }  ///< pre: not empty
    [[nodiscard]] Index last() const { return last_; }    ///< pre: not empty
    [[nodiscard]] Index count() const { return gaps_ ? std::ssize(list_) : last_ - first_ + 1; }
    /// Indices in common with a tile; 0 where it is not met.
    [[nodiscard]] Index met(Index tile) const {
        if (tile < first_ || tile > last_) return 0;
        if (regular_) {
            const Interval held = cut_.at(tile);
            return std::min(part_.end, held.end) - std::max(part_.begin, held.begin);
        }
        if (!gaps_) return list_[static_cast<std::size_t>(tile - first_)].indices;
        const auto found = std::ranges::lower_bound(list_, tile, {}, &Met::tile);
        return found->tile == tile ? found->indices : 0;
    }
    /// As a list; empty if the cut needs none.
    [[nodiscard]] std::span<const Met> list() const { return list_; }

private:
    std::span<const Met> list_;
    Interval part_;
    RegularCut cut_;
    bool regular_ = false;  // true: there is no list
    Index first_ = 0;
    Index last_ = -1;
    bool gaps_ = false;
};

/// Both cuts of a dimension. If one has pieces, the time is linear in the pieces of both.
class Contact {
public:
    Contact(const Dim& before, const Dim& after);

    /// Those before that a tile after meets.
    [[nodiscard]] MetTiles held(Index wanted) const { return met(wanted_, held_, wanted); }
    /// Those after that a tile before meets.
    [[nodiscard]] MetTiles wanted(Index held) const { return met(held_, wanted_, held); }
    /// Indices of a tile before.
    [[nodiscard]] Index held_size(Index tile) const { return size(held_, tile); }
    /// Indices of a tile after.
    [[nodiscard]] Index wanted_size(Index tile) const { return size(wanted_, tile); }
    /// Indices in common, of any two tiles, at most.
    [[nodiscard]] Index most() const { return most_; }
    /// True if every tile that a tile meets lies inside it, except the first and the last.
    [[nodiscard]] bool nested() const { return regular_; }

private:
    // One end's tiles. If an end has pieces: the tiles that each tile meets, and its indices.
    struct End {
        RegularCut cut;
        std::vector<std::size_t> begins;
        std::vector<Met> met;
        std::vector<Index> sizes;
    };
    struct Pair {
        Index one = 0;
        Index other = 0;
        Index indices = 0;
    };

    [[nodiscard]] MetTiles met(const End& one, const End& other, Index tile) const {
        if (regular_) return {one.cut.at(tile), other.cut};
        const auto at = static_cast<std::size_t>(tile);
        return MetTiles(std::span(one.met).subspan(one.begins[at], one.begins[at + 1] - one.begins[at]));
    }
    [[nodiscard]] Index size(const End& end, Index tile) const {
        return regular_ ? end.cut.at(tile).size() : end.sizes[static_cast<std::size_t>(tile)];
    }
    static void list(End& end, Index tiles, std::vector<Pair> pairs);

    bool regular_;
    Index most_ = 0;
    End held_;
    End wanted_;
};

}  // namespace reshard
