// A layout is the type of a distributed array: a total function device -> (tile, summand).
#pragma once

#include <array>
#include <string_view>

#include "reshard/planner/atoms.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

/// Element types. Those that are bytes only (f8) move but cannot be reduced.
enum class DType { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f8_e4m3fn, f8_e5m2, f16, bf16, f32, f64, c64, c128 };

[[nodiscard]] Index size_of(DType dtype);                        ///< bytes of one element
[[nodiscard]] std::string_view name(DType dtype);                ///< JAX's short name: f32, bf16, bool
[[nodiscard]] bool reducible(DType dtype);                       ///< false for the types that are bytes only
[[nodiscard]] bool is_floating(DType dtype);                     ///< f16, bf16, f32, f64
[[nodiscard]] bool is_complex(DType dtype);                      ///< c64, c128
[[nodiscard]] Result<DType> parse_dtype(std::string_view text);  ///< short and long names: f32, float32

/// How the summands of an unreduced array combine to its values. An avg is a sum, divided once by divisor(layout).
enum class Reduction { sum, max, min, prod, avg };

/// Every reduction, in order.
inline constexpr std::array<Reduction, 5> all_reductions = {Reduction::sum, Reduction::max, Reduction::min,
                                                            Reduction::prod, Reduction::avg};

[[nodiscard]] std::string_view name(Reduction reduction);  ///< sum, max, min, prod, avg
/// The reduction of that name. Errors: syntax.
[[nodiscard]] Result<Reduction> parse_reduction(std::string_view text);
/// What a receive does with the element that is there already.
enum class Combine { copy, sum, max, min, prod };

/// How the summands of a layout are combined; an avg's are summed.
[[nodiscard]] Combine combine_of(Reduction reduction);

/// Fails with Code::unsupported and the reason for types that are bytes only, for max and min of complex numbers, and
/// for an avg of integers or bool.
[[nodiscard]] Result<void> can_reduce(DType dtype, Reduction reduction);

/// One dimension: its extent and the atoms that shard it, major to minor. Without pieces, of s shards each takes
/// ceil(extent / s) indices; trailing tiles may be short or empty (JAX's and XLA's rule). Pieces cut it anywhere else:
/// ragged shares, torch.chunk axis by axis, block-cyclic.
struct Dim {
    /// Index `end` ends a piece, which starts where the piece before it ends and belongs to `shard`.
    struct Piece {
        Index end = 0;    ///< one past the last index
        Index shard = 0;  ///< from 0
        friend bool operator==(const Piece&, const Piece&) = default;
    };

    Index extent = 0;           ///< indices
    AtomList atoms;             ///< that shard it, major to minor
    std::vector<Piece> pieces;  ///< ascending, not empty, neighbours of different shards; none where ceil-div is meant
    Dim() = default;
    /// A dimension of so many indices.
    Dim(Index indices, AtomList list = {}, std::vector<Piece> cuts = {})
        : extent(indices), atoms(std::move(list)), pieces(std::move(cuts)) {}
    friend bool operator==(const Dim&, const Dim&) = default;
};

[[nodiscard]] Index shard_count(const Dim& dim);  ///< product of the sizes of its atoms
/// Indices of the largest block, the part that the cut gives to one shard. Blocks do not overlap. Without pieces, block
/// k starts at index k * block_extent.
[[nodiscard]] Index block_extent(const Dim& dim);
[[nodiscard]] Index tile_extent(const Dim& dim);                  ///< indices that a device holds, of the largest tile
[[nodiscard]] Index tile_extent_min(const Dim& dim);              ///< the same of the smallest tile
[[nodiscard]] Side side(const Dim& dim, Index shard);             ///< what shard number `shard` holds
[[nodiscard]] Interval interval(const Dim& dim, Index shard);     ///< the same. pre: dim.pieces is empty
[[nodiscard]] std::vector<Dim::Piece> pieces_of(const Dim& dim);  ///< also where ceil-div makes them
[[nodiscard]] std::vector<Side> sides(const Dim& dim);            ///< of all shards
[[nodiscard]] bool divides(const Dim& dim);                       ///< no pieces, and shards divide the extent

/// Shard i takes the next shares[i] indices. pre: shares of at least 0, one per shard, add up to the extent.
[[nodiscard]] Dim cut_by_shares(AtomList atoms, std::span<const Index> shares);
/// Block b of `block` indices belongs to shard b mod shards (ScaLAPACK's block-cyclic rule). pre: block >= 1.
[[nodiscard]] Dim cut_in_blocks(Index extent, AtomList atoms, Index block);
/// Cut axis by axis, each time by ceil-div: torch.chunk on each axis of a DTensor. pre: factors multiply to the shards.
[[nodiscard]] Dim cut_by_turns(Index extent, AtomList atoms, std::span<const Index> factors);
/// The cut of `dim` seen by its leading shards only, each `factor` shards as one. pre: factor divides the shards.
[[nodiscard]] Dim coarsened(const Dim& dim, const AtomList& leading, Index factor);
/// No empty piece, neighbours merged, none at all where ceil-div cuts the same.
[[nodiscard]] std::vector<Dim::Piece> canonical_pieces(const Dim& dim);

/// The type of a distributed array. Atoms that no dimension and no summand uses replicate.
/// Invariants (validate): mesh valid, atoms canonical and disjoint, pieces canonical, every product fits 64 bits,
/// can_reduce, `summed` divides the summands and is less; it is 1 of all but an avg.
struct Layout {
    DType dtype = DType::f32;              ///< of the elements
    Mesh mesh;                             ///< the devices, and names for their digits
    std::vector<Dim> dims;                 ///< one per dimension of the array
    AtomList unreduced;                    ///< the array is the sum over these digits, most major first
    Reduction reduction = Reduction::sum;  ///< how summands combine; means nothing where nothing is unreduced
    Index summed = 1;                      ///< for an avg: this many of its summands count as one (see divisor)

    /// Equal as values, names included; reductions and divisors count where something is unreduced.
    friend bool operator==(const Layout& a, const Layout& b);
};

/// Per dimension the axes that shard it, major to minor: P{"x", {}, {"y", "z:(1)2"}} as JAX's PartitionSpec.
struct PartitionEntry {
    std::vector<std::string> axes;                    ///< axes and sub-axes, x or z:(1)2; none: replicated
    PartitionEntry() = default;                       ///< replicated
    PartitionEntry(const char* axis) : axes{axis} {}  ///< one axis
    /// Several axes, major to minor.
    PartitionEntry(std::initializer_list<const char*> list) : axes(list.begin(), list.end()) {}
};
/// JAX's PartitionSpec.
using P = std::vector<PartitionEntry>;

/// A layout from names. `spec` may be shorter than `shape`; missing dimensions are replicated. Shapes in elements.
/// Errors: mesh, layout (axis unknown or used twice, factor that does not divide), overflow, syntax (a sub-axis).
[[nodiscard]] Result<Layout> make_layout(const Mesh& mesh, DType dtype, std::vector<Index> shape, const P& spec,
                                         const std::vector<std::string>& unreduced = {});

/// PyTorch's per-axis view: what one mesh axis does to the array.
struct Placement {
    /// DTensor's placements.
    enum class Kind { replicate, shard, partial };
    Kind kind = Kind::replicate;  ///< which of them
    std::size_t dim = 0;          ///< of the array, for shard
    friend bool operator==(const Placement&, const Placement&) = default;
};
/// Cut along this dimension of the array.
[[nodiscard]] constexpr Placement Shard(std::size_t dim) { return {Placement::Kind::shard, dim}; }
/// The same on all devices of the axis.
[[nodiscard]] constexpr Placement Replicate() { return {}; }
/// The array is the sum over the axis.
[[nodiscard]] constexpr Placement Partial() { return {Placement::Kind::partial, 0}; }

/// A layout from one placement per mesh axis; axes that shard one dimension do so in mesh order and axis by axis, as
/// torch.chunk in DTensor: 5 rows on 2 x 2 devices are 2, 1, 1, 1. Errors: as make_layout; unsupported (2^20 chunks).
[[nodiscard]] Result<Layout> from_placements(const Mesh& mesh, DType dtype, std::vector<Index> shape,
                                             const std::vector<Placement>& placements);

/// Fails unless the invariants of Layout hold: mesh, layout, overflow, unsupported.
[[nodiscard]] Result<void> validate(const Layout& layout);

[[nodiscard]] std::vector<Index> shape(const Layout& layout);  ///< extents of the whole array
[[nodiscard]] Index device_count(const Layout& layout);        ///< of its mesh
[[nodiscard]] Index summand_count(const Layout& layout);       ///< 1 where nothing is unreduced
/// The number by which the sum of the summands is divided to give the array: summands / summed for an avg, else 1. An
/// array that is summed over some axes and averaged over others is an avg in which the summed ones count as one.
[[nodiscard]] Index divisor(const Layout& layout);
/// Makes the layout the sum of its summands divided by `by`: a sum, or an avg. pre: `by` divides the summands.
void divide_by(Layout& layout, Index by);
[[nodiscard]] AtomList used_atoms(const Layout& layout);  ///< of dims and summands, as a set
[[nodiscard]] bool divides(const Layout& layout);         ///< in every dimension: all tiles have one shape
[[nodiscard]] bool has_pieces(const Layout& layout);      ///< some dimension is not cut by ceil-div

[[nodiscard]] Tile tile(const Layout& layout, Index device);      ///< what the device holds; nothing outside the mesh
[[nodiscard]] Index summand(const Layout& layout, Index device);  ///< which summand it holds, from 0
/// What one device holds, in elements per dimension; 0 where it holds nothing.
[[nodiscard]] std::vector<Index> tile_shape(const Layout& layout, Index device);
/// The global index of its first element; 0 where it holds nothing. Where a dimension has pieces the tile's indices
/// need not follow each other: tile() has them all.
[[nodiscard]] std::vector<Index> tile_offset(const Layout& layout, Index device);
/// How many elements it holds, for the size of a container.
[[nodiscard]] std::size_t tile_count(const Layout& layout, Index device);
[[nodiscard]] Index tile_elements(const Layout& layout);  ///< the largest tile's
[[nodiscard]] Index tile_bytes(const Layout& layout);     ///< the largest tile's
[[nodiscard]] Index global_bytes(const Layout& layout);   ///< of the whole array, once

/// True when both have the same unreduced atoms and, if there are any, the same reduction and divisor.
[[nodiscard]] bool same_summands(const Layout& a, const Layout& b);

/// The devices that differ from `device` on these atoms only, ordered by value. pre: device in the mesh.
[[nodiscard]] std::vector<Index> group_of(const Layout& layout, std::span<const Atom> atoms, Index device);

/// Same array, same device order, and the same atoms and cuts everywhere: equal as functions, whatever the names.
[[nodiscard]] bool same_tiles(const Layout& a, const Layout& b);

/// Same dtype and shape, or Code::mismatch with a sentence that says which differs.
[[nodiscard]] Result<void> same_array(const Layout& a, const Layout& b);

}  // namespace reshard
