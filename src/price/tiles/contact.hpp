// Which tiles of two cuts of one dimension have indices in common, and how many.
#pragma once

#include <algorithm>
#include <span>

#include "reshard/layout.hpp"

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
    /// Those that cut `extent` into blocks of `size` and meet an interval.
    MetTiles(Interval part, Index size, Index extent) : part_(part), size_(size), extent_(extent) {
        if (part.begin >= part.end) return;
        first_ = part.begin / size;
        last_ = (part.end - 1) / size;
    }

    [[nodiscard]] bool empty() const { return last_ < first_; }
    [[nodiscard]] Index first() const { return first_; }  ///< pre: not empty
    [[nodiscard]] Index last() const { return last_; }    ///< pre: not empty
    [[nodiscard]] Index count() const { return gaps_ ? std::ssize(list_) : last_ - first_ + 1; }
    /// Indices in common with a tile; 0 where it is not met.
    [[nodiscard]] Index met(Index tile) const {
        if (tile < first_ || tile > last_) return 0;
        if (size_ > 0) return std::min({part_.end, (tile + 1) * size_, extent_}) - std::max(part_.begin, tile * size_);
        if (!gaps_) return list_[static_cast<std::size_t>(tile - first_)].indices;
        const auto found = std::ranges::lower_bound(list_, tile, {}, &Met::tile);
        return found->tile == tile ? found->indices : 0;
    }
    /// As a list; none where the cut is one into blocks.
    [[nodiscard]] std::span<const Met> list() const { return list_; }

private:
    std::span<const Met> list_;
    Interval part_;
    Index size_ = 0;  // of a block; 0 where there is a list
    Index extent_ = 0;
    Index first_ = 0;
    Index last_ = -1;
    bool gaps_ = false;
};

/// Both cuts of a dimension. If one is not by ceil-div, the time is linear in their pieces.
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
    [[nodiscard]] bool nested() const { return blocks_; }

private:
    // One end's tiles. For tiles that are not blocks: the tiles that each meets, and its indices.
    struct End {
        Index block = 1;
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
        if (blocks_) return {block(extent_, one.block, tile), other.block, extent_};
        const auto at = static_cast<std::size_t>(tile);
        return MetTiles(std::span(one.met).subspan(one.begins[at], one.begins[at + 1] - one.begins[at]));
    }
    [[nodiscard]] Index size(const End& end, Index tile) const {
        return blocks_ ? block(extent_, end.block, tile).size() : end.sizes[static_cast<std::size_t>(tile)];
    }
    static void list(End& end, Index tiles, std::vector<Pair> pairs);

    Index extent_;
    bool blocks_;
    Index most_ = 0;
    End held_;
    End wanted_;
};

}  // namespace reshard
