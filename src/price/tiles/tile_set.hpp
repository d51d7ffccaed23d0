// Tiles that some devices have, to ask how much of them another tile meets.
#pragma once

#include "src/price/tiles/contact.hpp"
#include "src/price/tiles/tile_codes.hpp"

namespace reshard {

/// What a tile meets: elements, and tiles that have some of them.
struct TileCount {
    Index elements = 0;
    Index tiles = 0;
};

class TileSet {
public:
    /// One tile of the set, and how often it counts.
    struct Tile {
        Index code = 0;
        Index times = 1;
    };

    /// Of tiles before a move where `held`, else of those after it.
    TileSet(const std::vector<Contact>& contacts, bool held) : contacts_(contacts), held_(held) {}

    /// The tiles, ascending by code, none twice. What is given must outlive the questions.
    void assign(const TileCodes& codes, std::span<const Tile> tiles);

    /// What a tile of the other end meets in the set, within its team. `shards`: its numbers by dimension.
    [[nodiscard]] TileCount met(Index team, std::span<const Index> shards) const;

private:
    using Tiles = std::span<const Tile>;
    [[nodiscard]] MetTiles meetings(const CodeDim& dim, std::span<const Index> shards) const;
    // Of tiles from `begin` to `end`, whose codes are `base` but for the dimensions from `level` on.
    [[nodiscard]] TileCount count(std::size_t level, std::size_t begin, std::size_t end, Index base,
                                  std::span<const Index> shards) const;
    [[nodiscard]] TileCount count_last(std::size_t begin, std::size_t end, Index base,
                                       std::span<const Index> shards) const;
    [[nodiscard]] std::size_t place_of(std::size_t begin, std::size_t end, Index code) const;

    const std::vector<Contact>& contacts_;
    const bool held_;
    const TileCodes* codes_ = nullptr;
    Tiles tiles_;
    std::vector<TileCount> before_;  // by place: indices of the last dimension, and tiles, of those before it
};

}  // namespace reshard
