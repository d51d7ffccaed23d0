// A plan's steps as what they do to the digits of the local tile, before any order in memory is chosen.
#pragma once

#include "reshard/emit/program.hpp"
#include "src/emit/order.hpp"

namespace reshard {

/// A digit of the position in the mesh, and the digits of the tile that it takes the place of or that take its place.
struct Member {
    Atom atom;                        ///< of the position
    std::optional<Digit> taken = {};  ///< leaves the tile: its value is the device that gets a block
    std::optional<Digit> made = {};   ///< enters the tile: its value is the device that sent a block
    friend bool operator==(const Member&, const Member&) = default;
};

/// One thing that happens to all tiles.
struct Stage {
    OperationKind kind = OperationKind::reshape;  ///< not reshape, transpose or reduce
    const Mesh* mesh = nullptr;                   ///< whose positions the atoms and pairs are of
    std::vector<Index> before;                    ///< extents of the tile
    std::vector<Index> after;                     ///< and after it
    std::vector<Member> members = {};          ///< digits of the group; of a collective in any order that all agree on
    std::vector<SourceTargetPair> pairs = {};  ///< permute: devices
    Scale factor = {};                         ///< scale
    Combine combine = Combine::copy;           ///< as Operation::combine; also of a reduce_scatter
};

/// The tile shape of every device. pre: has_equal_tiles
[[nodiscard]] std::vector<Index> extents_of(const Layout& layout);
/// Errors: unsupported.
[[nodiscard]] Result<void> has_equal_tiles(const Layout& layout);

/// Stages in order. Local steps come as one stage or several. Errors: unsupported, as portable.
[[nodiscard]] Result<std::vector<Stage>> stages_of(const Plan& plan);

[[nodiscard]] Order taken_by(const Stage& stage);  ///< digits that leave the tile
[[nodiscard]] Order made_by(const Stage& stage);   ///< digits that enter it

}  // namespace reshard
