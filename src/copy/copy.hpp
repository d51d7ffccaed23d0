// Strided copies, fills and combinations between boxes of two tiles. Each tile has a storage of its own. A loop nest is
// built once, when a plan is prepared, and runs whenever the buffers are known.
#pragma once

#include "reshard/planner/schedule.hpp"
#include "reshard/planner/storage.hpp"
#include "src/copy/kernels/dispatch.hpp"

namespace reshard {

/// The memory of a box: bytes from the start of a buffer and, for each dimension, an extent and a stride.
struct Region {
    Index offset_bytes = 0;
    Index element_bytes = 1;
    std::vector<Index> extents;
    std::vector<Index> strides_bytes;
    friend bool operator==(const Region&, const Region&) = default;
};

/// The region of `box` in a slot. pre: contains(slot.tile, box); the slot's storage fits 64 bits in bytes (lower
/// checks).
[[nodiscard]] Region region_of(const Slot& slot, const Box& box, Index element_bytes);

/// `box` alone, dense and row-major from a byte on. A staged box lies like this.
[[nodiscard]] Region packed_region(const Box& box, Index element_bytes, Index offset_bytes = 0);

/// The region of `part`, given the `region` of `box`. pre: box contains part.
[[nodiscard]] Region within(const Region& region, const Box& box, const Box& part);

[[nodiscard]] Index bytes_of(const Region& region);

/// The same elements in fewer dimensions. Extents of 1 are dropped, and dimensions that continue each other are merged.
/// The order stays, so two regions of one box still list their elements in the same order.
[[nodiscard]] Region coalesce(const Region& region);

/// True if the elements are contiguous in row-major order: the region is one run of bytes.
[[nodiscard]] bool contiguous(const Region& region);

/// Loops over the elements of two regions of one shape, outermost first, in the memory order of the target. Dimensions
/// that continue each other on both sides are one loop. An extent of 1 has no loop.
struct LoopNest {
    struct Loop {
        Index extent;
        Index source_stride;  ///< bytes
        Index target_stride;  ///< bytes
    };
    Index source_offset = 0;
    Index target_offset = 0;
    Index element_bytes = 1;
    bool empty = false;
    std::vector<Loop> loops;
};

/// pre: same extents and element size.
[[nodiscard]] LoopNest loop_nest(const Region& source, const Region& target);

/// Takes the innermost loop out of the nest if it is contiguous on both sides. Returns the bytes that move as one run:
/// the bytes of that loop, or of one element.
[[nodiscard]] Index take_run(LoopNest& nest);

/// The innermost part of a copy, moved by one call of a kernel. It moves `unit_bytes` as a whole: an element, or a
/// short run.
struct Leaf {
    bool transposed = false;  ///< source and target run along different dimensions: plane, else rows
    Index unit_bytes = 1;
    Rows rows;
    Plane plane;
};

[[nodiscard]] Index bytes_of(const Leaf& leaf);
void run_leaf(const Leaf& leaf, Store store, const std::byte* source, std::byte* target);

/// A nest as loops around a leaf. Takes the loops of the leaf out of the nest. The other loops keep their order.
[[nodiscard]] Leaf take_leaf(LoopNest& nest);

/// Copies the elements of one region to another. pre: the regions do not overlap in memory.
class BoxCopy {
public:
    BoxCopy(const Region& source, const Region& target);
    void run(const std::byte* source, std::byte* target, Store store = Store::cached) const;
    /// True if there is more than one run of bytes, at one distance on each side.
    [[nodiscard]] bool in_rows() const;

private:
    friend class DealtCopies;
    LoopNest nest_;  // without the leaf's loops
    Leaf leaf_;
};

/// Copies that run together. Copies whose rows are neighbours in the source move row by row in turn, so the source is
/// read once and in order.
class DealtCopies {
public:
    /// The copy lives until the next run.
    void add(const BoxCopy& copy, const std::byte* source, std::byte* target);
    /// Runs what was added since the last run.
    void run(Store store);

private:
    struct Added {
        const BoxCopy* copy;
        const std::byte* source;
        std::byte* target;
    };
    [[nodiscard]] bool deal(const Added& added, std::int64_t& rows);

    std::vector<Added> added_;
    std::vector<Lane> lanes_;
};

/// The bytes of one element. The bytes past its size are unused.
using Pattern = std::array<std::byte, 16>;

/// The neutral element: 0 for sums, 1 for prod. For max it is the lowest value and for min the highest, which are
/// infinities for floats. pre: can_reduce(dtype, combine).
[[nodiscard]] Pattern identity_of(DType dtype, Combine combine);

/// Sets every element of a region to one value. The value is zero, which is 0 (and false) in every dtype, or a pattern.
class BoxFill {
public:
    explicit BoxFill(const Region& target, const Pattern& pattern = {});
    void run(std::byte* target) const;

private:
    LoopNest nest_;
    Index run_bytes_;
    Pattern pattern_;
};

/// Combines the elements of one region into another: target = combine(target, source), as elements.hpp defines.
class BoxCombine {
public:
    /// pre: combine is not copy; dtype and combination go together (can_reduce).
    BoxCombine(DType dtype, Combine combine, const Region& source, const Region& target);
    void run(const std::byte* source, std::byte* target) const;

private:
    DType dtype_;
    Combine combine_;
    LoopNest nest_;
};

/// target[i] = combine(target[i], source[i]) along one loop. Null for a dtype and combination that do not go together.
using CombineLine = void (*)(const LoopNest::Loop&, const std::byte* source, std::byte* target);
[[nodiscard]] CombineLine combine_line_of(DType dtype, Combine combine);

/// The same for `elements` dense elements. pre: as BoxCombine.
void combine_dense(DType dtype, Combine combine, const std::byte* source, std::byte* target, Index elements);

/// Multiplies the elements of a region by times, then divides them by over. f16 and bf16 round once for both.
class BoxScale {
public:
    /// pre: a floating or complex dtype.
    BoxScale(DType dtype, Scale scale, const Region& target);
    void run(std::byte* target) const;

private:
    DType dtype_;
    Scale scale_;
    LoopNest nest_;
};

/// Runs leaf(source, target) for every combination of `loops`, the last loop fastest.
template <class Source, class Leaf>
void for_each(std::span<const LoopNest::Loop> loops, Source* source, std::byte* target, const Leaf& leaf) {
    if (loops.empty()) return leaf(source, target);
    const LoopNest::Loop loop = loops.front();
    for (Index i = 0; i < loop.extent; ++i) {
        for_each(loops.subspan(1), source + i * loop.source_stride, target + i * loop.target_stride, leaf);
    }
}

}  // namespace reshard
