// A layout is the type of a distributed array: a total function device -> (tile, summand).
#pragma once

#include <array>
#include <string_view>

#include "reshard/planner/atoms.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

/// Element types. The f8 types are bytes only: they move, but cannot be reduced.
enum class DType { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f8_e4m3fn, f8_e5m2, f16, bf16, f32, f64, c64, c128 };

[[nodiscard]] Index size_of(DType dtype);                        ///< bytes of one element
[[nodiscard]] std::string_view name(DType dtype);                ///< JAX's short name: f32, bf16, bool
[[nodiscard]] bool reducible(DType dtype);                       ///< false for the types that are bytes only
[[nodiscard]] bool is_floating(DType dtype);                     ///< f16, bf16, f32, f64
[[nodiscard]] bool is_complex(DType dtype);                      ///< c64, c128
[[nodiscard]] Result<DType> parse_dtype(std::string_view text);  ///< short and long names: f32, float32

/// How the summands of an unreduced array combine to its values. An avg is a sum that divisor(layout) divides once.
enum class Reduction { sum, max, min, prod, avg };

/// Every reduction, in order.
inline constexpr std::array<Reduction, 5> all_reductions = {Reduction::sum, Reduction::max, Reduction::min,
                                                            Reduction::prod, Reduction::avg};

[[nodiscard]] std::string_view name(Reduction reduction);  ///< sum, max, min, prod, avg
/// The reduction of that name. Errors: syntax.
[[nodiscard]] Result<Reduction> parse_reduction(std::string_view text);
/// How a receive combines the new element with the one in place.
enum class Combine { copy, sum, max, min, prod };

/// How a receive combines summands of this reduction. The summands of an avg are summed.
[[nodiscard]] Combine combine_of(Reduction reduction);

/// Fails with Code::unsupported and the reason if elements of this type cannot be reduced so. That holds for types that
/// are bytes only, for max and min of complex numbers, and for an avg of integers or bool.
[[nodiscard]] Result<void> can_reduce(DType dtype, Reduction reduction);

/// One dimension: its extent and the atoms that shard it, major to minor. If it has no pieces, each of s shards takes
/// ceil(extent / s) indices, and trailing tiles may be short or empty (the rule of JAX and XLA). A balanced cut gives
/// extent / s indices to each shard, and one more to the first extent % s shards (the rule of numpy.array_split).
/// Pieces cut it anywhere else: ragged shares, torch.chunk axis by axis, block-cyclic.
struct Dim {
    /// A piece starts where the piece before it ends, and belongs to one shard.
    struct Piece {
        Index end = 0;    ///< one past its last index
        Index shard = 0;  ///< the owner, counted from 0
        friend bool operator==(const Piece&, const Piece&) = default;
    };

    Index extent = 0;           ///< indices
    AtomList atoms;             ///< the atoms that shard it, major to minor
    std::vector<Piece> pieces;  ///< ascending, each with indices, neighbours on different shards; or empty
    bool balanced = false;      ///< true: a balanced cut, which ceil-div would not make; it has no pieces
    Dim() = default;
    /// A dimension of `indices` indices.
    Dim(Index indices, AtomList list = {}, std::vector<Piece> cuts = {})
        : extent(indices), atoms(std::move(list)), pieces(std::move(cuts)) {}
    friend bool operator==(const Dim&, const Dim&) = default;
};

[[nodiscard]] Index shard_count(const Dim& dim);  ///< product of the sizes of its atoms
[[nodiscard]] bool by_ceil_div(const Dim& dim);   ///< true: it has no pieces and is not balanced
/// Indices of the largest block, the part that the cut gives to one shard. Blocks do not overlap. Under ceil-div, block
/// k starts at index k * block_extent.
[[nodiscard]] Index block_extent(const Dim& dim);
[[nodiscard]] Index tile_extent(const Dim& dim);                  ///< indices of the largest tile that a device holds
[[nodiscard]] Index tile_extent_min(const Dim& dim);              ///< indices of the smallest tile
[[nodiscard]] Side side(const Dim& dim, Index shard);             ///< the indices that the shard holds
[[nodiscard]] Interval interval(const Dim& dim, Index shard);     ///< the same. pre: dim.pieces is empty
[[nodiscard]] std::vector<Dim::Piece> pieces_of(const Dim& dim);  ///< its pieces; made from the cut if it has no own
[[nodiscard]] std::vector<Side> sides(const Dim& dim);            ///< the indices of each shard
[[nodiscard]] bool divides(const Dim& dim);               ///< true: cut by ceil-div, and the shards divide the extent
[[nodiscard]] bool same_cut(const Dim& a, const Dim& b);  ///< true: as many shards, and each has the same indices

/// A dimension where shard i takes the next shares[i] indices; the shares add up to its extent.
/// pre: one share per shard, each at least 0.
[[nodiscard]] Dim with_shard_sizes(AtomList atoms, std::span<const Index> shares);
/// A block-cyclic dimension, as in ScaLAPACK: block b of `block` indices is on shard b mod shards. pre: block >= 1.
[[nodiscard]] Dim block_cyclic(Index extent, AtomList atoms, Index block);
/// A balanced dimension, as numpy.array_split cuts: 10 indices on 4 shards become 3, 3, 2, 2.
[[nodiscard]] Dim balanced(Index extent, AtomList atoms);
/// A dimension cut axis by axis, each time by ceil-div, as torch.chunk cuts on each axis of a DTensor.
/// pre: the product of the factors is the number of shards.
[[nodiscard]] Dim chunked_per_axis(Index extent, AtomList atoms, std::span<const Index> factors);
/// `dim` cut by its `leading` atoms alone: each `factor` shards in a row become one. pre: factor divides the shards.
[[nodiscard]] Dim coarsened(const Dim& dim, const AtomList& leading, Index factor);
/// Drops empty pieces and merges neighbours on one shard. Drops all pieces if ceil-div or a balanced cut cuts the same,
/// and sets `balanced`. Two canonical dimensions are equal exactly when each shard has the same indices.
void make_canonical(Dim& dim);

/// The type of a distributed array. The array is replicated over the atoms that no dimension and no summand uses.
/// Invariants (validate): the mesh is valid; atoms are canonical and disjoint; cuts are canonical; every product fits
/// 64 bits; can_reduce holds. For an avg, `summed` divides the number of summands and is less; otherwise it is 1.
struct Layout {
    DType dtype = DType::f32;              ///< type of the elements
    Mesh mesh;                             ///< the devices, and names for their digits
    std::vector<Dim> dims;                 ///< one per dimension of the array
    AtomList unreduced;                    ///< the digits that number the summands, most major first
    Reduction reduction = Reduction::sum;  ///< how summands combine; ignored if nothing is unreduced
    Index summed = 1;                      ///< for an avg: this many of its summands count as one (see divisor)

    /// Compares values, names included. Reductions and divisors count only if something is unreduced.
    friend bool operator==(const Layout& a, const Layout& b);
};

/// The axes that shard one dimension, major to minor. P{"x", {}, {"y", "z:(1)2"}} reads like JAX's PartitionSpec.
struct PartitionEntry {
    std::vector<std::string> axes;                    ///< axes and sub-axes, x or z:(1)2; empty: replicated
    PartitionEntry() = default;                       ///< replicated
    PartitionEntry(const char* axis) : axes{axis} {}  ///< one axis
    /// Several axes, major to minor.
    PartitionEntry(std::initializer_list<const char*> list) : axes(list.begin(), list.end()) {}
};
/// JAX's PartitionSpec: one entry per dimension.
using P = std::vector<PartitionEntry>;

/// Makes a layout from names of axes. `spec` may be shorter than `shape`; then the last dimensions are replicated.
/// Shapes are in elements.
/// Errors: mesh, layout (axis unknown or used twice, factor that does not divide), overflow, syntax (a sub-axis).
[[nodiscard]] Result<Layout> make_layout(const Mesh& mesh, DType dtype, std::vector<Index> shape, const P& spec,
                                         const std::vector<std::string>& unreduced = {});

/// PyTorch's per-axis view: what one mesh axis does to the array.
struct Placement {
    /// DTensor's placements.
    enum class Kind { replicate, shard, partial };
    Kind kind = Kind::replicate;  ///< what the axis does
    std::size_t dim = 0;          ///< for shard: which dimension of the array
    friend bool operator==(const Placement&, const Placement&) = default;
};
/// The axis cuts this dimension of the array.
[[nodiscard]] constexpr Placement Shard(std::size_t dim) { return {Placement::Kind::shard, dim}; }
/// All devices along the axis hold the same.
[[nodiscard]] constexpr Placement Replicate() { return {}; }
/// The array is the sum over the axis.
[[nodiscard]] constexpr Placement Partial() { return {Placement::Kind::partial, 0}; }

/// Makes a layout from one placement per mesh axis. Several axes that shard one dimension cut it in mesh order, axis by
/// axis, like torch.chunk in DTensor: 5 rows on 2 x 2 devices become 2, 1, 1, 1.
/// Errors: as make_layout; unsupported (2^20 chunks).
[[nodiscard]] Result<Layout> from_placements(const Mesh& mesh, DType dtype, std::vector<Index> shape,
                                             const std::vector<Placement>& placements);

/// Fails unless the invariants of Layout hold. Errors: mesh, layout, overflow, unsupported.
[[nodiscard]] Result<void> validate(const Layout& layout);

[[nodiscard]] std::vector<Index> shape(const Layout& layout);  ///< extents of the whole array
[[nodiscard]] Index device_count(const Layout& layout);        ///< devices of its mesh
[[nodiscard]] Index summand_count(const Layout& layout);       ///< 1 if nothing is unreduced
/// The divisor that turns the sum of the summands into the array: summands / summed for an avg, otherwise 1. An array
/// may be summed over some axes and averaged over others: an avg where the summands of the summed axes count as one.
[[nodiscard]] Index divisor(const Layout& layout);
/// Makes the layout a sum or an avg: the sum of its summands, divided by `by`. pre: `by` divides the summands.
void divide_by(Layout& layout, Index by);
[[nodiscard]] AtomList used_atoms(const Layout& layout);  ///< the atoms of dims and summands, as a set
[[nodiscard]] bool divides(const Layout& layout);     ///< true: every dimension divides, so all tiles have one shape
[[nodiscard]] bool has_pieces(const Layout& layout);  ///< true: some dimension is not cut by ceil-div

[[nodiscard]] Tile tile(const Layout& layout, Index device);      ///< what the device holds; nothing() outside the mesh
[[nodiscard]] Index summand(const Layout& layout, Index device);  ///< the number of the summand it holds, from 0
/// The extents of the device's tile, in elements; all 0 if it holds nothing.
[[nodiscard]] std::vector<Index> tile_shape(const Layout& layout, Index device);
/// The global index of the tile's first element; all 0 if the device holds nothing. In a dimension with pieces the
/// tile's indices may have gaps: tile() has them all.
[[nodiscard]] std::vector<Index> tile_offset(const Layout& layout, Index device);
/// The number of elements in the device's tile, for the size of a container.
[[nodiscard]] std::size_t tile_count(const Layout& layout, Index device);
[[nodiscard]] Index tile_elements(const Layout& layout);  ///< elements of the largest tile
[[nodiscard]] Index tile_bytes(const Layout& layout);     ///< bytes of the largest tile
[[nodiscard]] Index global_bytes(const Layout& layout);   ///< bytes of the whole array, counted once

/// True when both have the same unreduced atoms and, if there are any, the same reduction and divisor.
[[nodiscard]] bool same_summands(const Layout& a, const Layout& b);

/// The devices that differ from `device` on these atoms only, ordered by value. pre: device in the mesh.
[[nodiscard]] std::vector<Index> group_of(const Layout& layout, std::span<const Atom> atoms, Index device);

/// True when every device holds the same in both layouts: the same array, device order, atoms and cuts. The names of
/// the axes may differ.
[[nodiscard]] bool equivalent(const Layout& a, const Layout& b);

/// Fails with Code::mismatch unless dtype and shape are the same. The sentence says which of them differs.
[[nodiscard]] Result<void> same_array(const Layout& a, const Layout& b);

}  // namespace reshard
