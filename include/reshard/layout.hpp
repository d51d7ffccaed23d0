// A layout is the type of a distributed array: a total function device -> (tile, summand).
#pragma once

#include <array>
#include <string_view>

#include "reshard/mesh.hpp"

namespace reshard {

/// Element types. Those that are bytes only (f8) move but cannot be reduced.
enum class DType { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f8_e4m3fn, f8_e5m2, f16, bf16, f32, f64, c64, c128 };

[[nodiscard]] Index size_of(DType dtype);                        ///< bytes of one element
[[nodiscard]] std::string_view name(DType dtype);                ///< JAX's short name: f32, bf16, bool
[[nodiscard]] bool reducible(DType dtype);                       ///< false for the types that are bytes only
[[nodiscard]] Result<DType> parse_dtype(std::string_view text);  ///< short and long names: f32, float32

/// How the summands of an unreduced array make up its values. An avg is a sum and then one factor: 1 / summands.
enum class Reduction { sum, max, min, prod, avg };

inline constexpr std::array<Reduction, 5> all_reductions = {Reduction::sum, Reduction::max, Reduction::min,
                                                            Reduction::prod, Reduction::avg};

[[nodiscard]] std::string_view name(Reduction reduction);  ///< sum, max, min, prod, avg
[[nodiscard]] Result<Reduction> parse_reduction(std::string_view text);
/// How what arrives meets what is there.
enum class Combine { copy, sum, max, min, prod };

/// How the summands of a layout are combined; an avg's are summed.
[[nodiscard]] Combine combine_of(Reduction reduction);

/// Code::unsupported, with the reason, for types that are bytes only, max and min of complex numbers, and an avg of
/// integers or bool.
[[nodiscard]] Result<void> can_reduce(DType dtype, Reduction reduction);

/// A half-open interval of indices; empty when begin == end.
struct Interval {
    Index begin = 0;
    Index end = 0;
    [[nodiscard]] constexpr Index size() const { return end - begin; }
    friend bool operator==(const Interval&, const Interval&) = default;
};

/// A product of intervals, one per dimension, in global indices. Rank 0 holds one element.
using Box = std::vector<Interval>;

[[nodiscard]] Index count(const Box& box);                ///< elements
[[nodiscard]] Box intersect(const Box& a, const Box& b);  ///< empty intervals where they miss each other

/// One dimension: its extent and the atoms that shard it, major to minor. With s shards a tile takes
/// ceil(extent / s) indices; trailing tiles may be short or empty (JAX's and XLA's rule).
struct Dim {
    Index extent = 0;
    AtomList atoms;
    friend bool operator==(const Dim&, const Dim&) = default;
};

[[nodiscard]] Index shard_count(const Dim& dim);
[[nodiscard]] Index tile_extent(const Dim& dim);               ///< ceil(extent / shards): the largest tile's
[[nodiscard]] Interval interval(const Dim& dim, Index shard);  ///< what shard number `shard` holds
[[nodiscard]] bool divides(const Dim& dim);                    ///< shards divide the extent

/// The type of a distributed array. Atoms that no dimension and no summand uses replicate.
/// Invariants (validate): mesh valid, atoms canonical and disjoint, every product fits 64 bits, can_reduce.
struct Layout {
    DType dtype = DType::f32;
    Mesh mesh;
    std::vector<Dim> dims;
    AtomList unreduced;                    ///< the array is the sum over these digits (a set, most major first)
    Reduction reduction = Reduction::sum;  ///< or this instead of the sum; means nothing where nothing is unreduced

    friend bool operator==(const Layout& a, const Layout& b);
};

/// Per dimension the axes that shard it, major to minor: P{"x", {}, {"y", "z:(1)2"}} as JAX's PartitionSpec.
struct PartitionEntry {
    std::vector<std::string> axes;
    PartitionEntry() = default;
    PartitionEntry(const char* axis) : axes{axis} {}
    PartitionEntry(std::initializer_list<const char*> list) : axes(list.begin(), list.end()) {}
};
using P = std::vector<PartitionEntry>;

/// A layout from names. `spec` may be shorter than `shape`; missing dimensions are replicated. Shapes in elements.
/// Errors: mesh, layout (axis unknown or used twice, factor that does not divide), overflow, syntax (a sub-axis).
[[nodiscard]] Result<Layout> make_layout(const Mesh& mesh, DType dtype, std::vector<Index> shape, const P& spec,
                                         const std::vector<std::string>& unreduced = {});

/// PyTorch's per-axis view: what one mesh axis does to the array.
struct Placement {
    enum class Kind { replicate, shard, partial } kind = Kind::replicate;
    std::size_t dim = 0;  ///< for shard
    friend bool operator==(const Placement&, const Placement&) = default;
};
[[nodiscard]] constexpr Placement Shard(std::size_t dim) { return {Placement::Kind::shard, dim}; }
[[nodiscard]] constexpr Placement Replicate() { return {}; }
[[nodiscard]] constexpr Placement Partial() { return {Placement::Kind::partial, 0}; }

/// A layout from one placement per mesh axis; axes that shard one dimension do so in mesh order, as in DTensor.
/// Errors: as make_layout; unsupported where torch.chunk axis by axis cuts elsewhere than ceil-div at once.
[[nodiscard]] Result<Layout> from_placements(const Mesh& mesh, DType dtype, std::vector<Index> shape,
                                             const std::vector<Placement>& placements);

[[nodiscard]] Result<void> validate(const Layout& layout);

[[nodiscard]] std::vector<Index> shape(const Layout& layout);
[[nodiscard]] Index device_count(const Layout& layout);
[[nodiscard]] Index summand_count(const Layout& layout);
[[nodiscard]] AtomList used_atoms(const Layout& layout);  ///< of dims and summands, as a set
[[nodiscard]] bool divides(const Layout& layout);         ///< in every dimension: all tiles have one shape

[[nodiscard]] Box tile(const Layout& layout, Index device);       ///< what the device holds
[[nodiscard]] Index summand(const Layout& layout, Index device);  ///< which summand it holds, from 0
[[nodiscard]] Index tile_elements(const Layout& layout);          ///< the largest tile's
[[nodiscard]] Index tile_bytes(const Layout& layout);
[[nodiscard]] Index global_bytes(const Layout& layout);

/// The same unreduced atoms, and under the same reduction if there are any.
[[nodiscard]] bool same_summands(const Layout& a, const Layout& b);

/// Same array (dtype, shape, devices) and the same atoms everywhere: equal as functions, whatever the names.
[[nodiscard]] bool same_tiles(const Layout& a, const Layout& b);

/// Same dtype and shape on the same number of devices, or Code::mismatch with a sentence that says which differs.
[[nodiscard]] Result<void> same_array(const Layout& a, const Layout& b);

/// Where a tile lies in local memory: element (i_0, ...) of the tile at offset + sum i_k * strides[k], in elements.
struct Storage {
    Index offset = 0;
    std::vector<Index> strides;
    friend bool operator==(const Storage&, const Storage&) = default;
};

[[nodiscard]] Storage row_major(const Box& tile);     ///< dense, last dimension contiguous
[[nodiscard]] Storage column_major(const Box& tile);  ///< dense, first dimension contiguous
/// Elements from the start of the buffer to one past the last element of the tile; 0 for an empty tile.
/// Code::overflow when that leaves 64 bits, Code::mismatch on a wrong number of strides or a negative one.
[[nodiscard]] Result<Index> extent_of(const Storage& storage, const Box& tile);

}  // namespace reshard
