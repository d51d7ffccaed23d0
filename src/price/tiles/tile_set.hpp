// Tiles that some devices have, to ask how much of them another tile meets.
#pragma once

#include "src/price/tiles/contact.hpp"
#include "src/price/tiles/tile_codes.hpp"

namespace reshard {

/// The elements that a tile meets, and the number of tiles that have some of them.
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

    /// The tiles before a move if `held`, or else the tiles after it.
    TileSet(const std::vector<Contact>& contacts, bool held) : contacts_(contacts), held_(held) {}

    /// Sets the tiles, ascending by code, each once. The arguments must outlive the queries.
    void assign(const TileCodes& codes, std::span<const Tile> tiles);

    /// Counts the tiles of the set that a tile of the other end meets within its team. `shards`: its numbers by
    /// dimension.
    [[nodiscard]] TileCount met(Index team, std::span<const Index> shards) const;

private:
    using Tiles = std::span<const Tile>;
    [[nodiscard]] MetTiles meetings(const CodeDim& dim, std::span<const Index> shards) const;
    // Counts tiles [begin, end). Their codes agree with `base` in all dimensions before `level`.
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
