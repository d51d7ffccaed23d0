// The steps of a plan as changes to the digits of the local tile, before any memory order is chosen.
#pragma once

#include "reshard/emit/program.hpp"
#include "src/emit/order.hpp"

namespace reshard {

/// A digit of the position in the mesh, and the digits of the tile that it replaces or that replace it.
struct Member {
    Atom atom;                        ///< of the position
    std::optional<Digit> taken = {};  ///< leaves the tile; its value is the device that receives a block
    std::optional<Digit> made = {};   ///< enters the tile; its value is the device that sent a block
    friend bool operator==(const Member&, const Member&) = default;
};

/// One change of all tiles.
struct Stage {
    OperationKind kind = OperationKind::reshape;  ///< not reshape, transpose or reduce
    const Mesh* mesh = nullptr;                   ///< the atoms and pairs are of its positions
    std::vector<Index> before;                    ///< extents of the tile
    std::vector<Index> after;                     ///< and after it
    std::vector<Member> members = {};             ///< digits of the group; in a collective, in any order that all share
    std::vector<SourceTargetPair> pairs = {};     ///< permute: devices
    Scale factor = {};                            ///< scale
    Combine combine = Combine::copy;              ///< as Operation::combine; also of a reduce_scatter
    DType dtype = DType::f32;                     ///< of the elements before it
    DType made = DType::f32;                      ///< cast: of the elements after it
};

/// The extents of the tile of every device. pre: has_equal_tiles
[[nodiscard]] std::vector<Index> extents_of(const Layout& layout);
/// Errors: unsupported, with the reason, if the tiles have several shapes.
[[nodiscard]] Result<void> has_equal_tiles(const Layout& layout);
/// The layout with the indices of each dimension in the order of shards, so that every cut is even. The tiles stay.
/// pre: has_equal_tiles
[[nodiscard]] Layout in_order_of_shards(Layout layout);

/// The indices of a dimension in the order of shards.
[[nodiscard]] std::vector<Interval> runs_of_shards(const Dim& dim);
/// The way back: the places of all indices, in their order, among these runs one after another.
[[nodiscard]] std::vector<Interval> places_of(const std::vector<Interval>& runs);

/// The stages in order. A local step is one stage or several. `first` is the number of the first step, for errors.
/// Errors: unsupported, as portable. pre: no step is a view, and every layout divides.
[[nodiscard]] Result<std::vector<Stage>> stages_of(const Plan& plan, std::size_t first);

[[nodiscard]] Order taken_by(const Stage& stage);  ///< digits that leave the tile
[[nodiscard]] Order made_by(const Stage& stage);   ///< digits that enter it

}  // namespace reshard
