// The senders of each device in a permute and in an exchange. All ranks must agree on them.
#pragma once

#include <span>

#include "reshard/planner/step.hpp"
#include "src/plan/stripes.hpp"

namespace reshard {

/// The number of a tile: the shard number in each dimension.
using TileNumber = std::vector<Index>;

[[nodiscard]] TileNumber tile_number(const Layout& layout, Index device);  ///< pre: device in the mesh
[[nodiscard]] Tile tile_of(const Layout& layout, const TileNumber& number);

/// The shards of one dimension whose blocks touch a side, ascending. pre: the side lies within the extent.
[[nodiscard]] std::vector<Index> touched_shards(const Dim& dim, const Side& side);

/// The non-empty tiles of `layout` that a tile touches, in row-major order of their numbers.
[[nodiscard]] std::vector<TileNumber> touched_tiles(const Layout& layout, const Tile& tile);

/// Elements [begin, end) of a piece, in row-major order, served by `holder`.
struct Share {
    Index holder = 0;
    Index begin = 0;
    Index end = 0;
};

/// The peers of one rank in one step.
class Routing {
public:
    /// `lost`: devices that hold nothing before, whatever the layout says, ascending. Then there are no teams: a device
    /// is served by any replica that is left.
    Routing(const Layout& before, const Layout& after, Index rank, const Network& network,
            std::span<const Index> lost = {});
    Routing(const Layout& before, const Layout& after, Index rank, Network&& network,
            std::span<const Index> lost = {}) = delete;  // it keeps references

    /// The devices that hold this tile of this summand before, ascending, except lost ones.
    [[nodiscard]] std::vector<Index> holders_of(const TileNumber& number, Index summand) const;

    /// The devices of the rank's team (team_atoms) that hold this tile of this summand in `layout` (before or after),
    /// ascending.
    [[nodiscard]] std::vector<Index> devices_of(const Layout& layout, const TileNumber& number, Index summand) const;

    /// Returns the device whose tile in `theirs` is the rank's tile in `mine`, one to one over all devices (partners).
    /// pre: `mine` and `theirs` are before and after, or after and before, and their tiles agree in shape and number.
    [[nodiscard]] Index partner(const Layout& mine, const Layout& theirs) const;

    /// The receivers of a source tile's parts, and the holders that share it.
    [[nodiscard]] std::vector<Stripes> stripes_of(const TileNumber& number, Index summand,
                                                  std::vector<Index> holders) const;

    /// Returns the device that serves the rank its piece of a source tile. With one holder no other device is looked
    /// at.
    [[nodiscard]] std::vector<Share> shares_of(const TileNumber& number, Index summand,
                                               const std::vector<Index>& holders) const;

private:
    const Layout& before_;
    const Layout& after_;
    const Index rank_;
    const Network& network_;
    const std::span<const Index> lost_;
    const AtomList team_;
};

/// Parts of a tile, in row-major order, that hold its elements [begin, end) in row-major order: at most 2 x rank - 1.
[[nodiscard]] std::vector<Tile> tiles_of_range(const Tile& tile, Index begin, Index end);

}  // namespace reshard
