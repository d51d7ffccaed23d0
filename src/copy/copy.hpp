// Strided copies, fills and combinations between boxes of two tiles, each with its own storage. A loop nest is made
// once, when a plan is prepared, and runs whenever buffers are known.
#pragma once

#include "reshard/planner/schedule.hpp"
#include "reshard/planner/storage.hpp"
#include "src/copy/cast.hpp"

namespace reshard {

/// The place of a box's elements: bytes from the start of a buffer and, per dimension, how many and how far apart.
struct Region {
    Index offset_bytes = 0;
    Index element_bytes = 1;
    std::vector<Index> extents;
    std::vector<Index> strides_bytes;
    friend bool operator==(const Region&, const Region&) = default;
};

/// The region of `box` in a slot. pre: contains(slot.tile, box); the slot's bytes fit 64 bits (lower checks this).
[[nodiscard]] Region region_of(const Slot& slot, const Box& box, Index element_bytes);

/// `box` alone, dense and row-major from `offset_bytes` on, as a staged box lies.
[[nodiscard]] Region packed_region(const Box& box, Index element_bytes, Index offset_bytes = 0);

/// The region of `part`. `region` is the region of `box`, which contains `part`.
[[nodiscard]] Region within(const Region& region, const Box& box, const Box& part);

[[nodiscard]] Index bytes_of(const Region& region);

/// The same elements in fewer dimensions: extents of 1 are dropped, and dimensions that continue each other are merged.
/// Their order stays, so two regions of one box still list their elements in the same order.
[[nodiscard]] Region coalesce(const Region& region);

/// True when the elements lie one after another in row-major order: the region is one run of bytes.
[[nodiscard]] bool contiguous(const Region& region);

/// Loops over the elements of two regions of one shape, outermost first, in the order of the target in memory.
/// Dimensions that continue each other on both sides are one loop; extents of 1 give no loop.
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
/// The same for elements of two sizes. LoopNest::element_bytes is the size at the source. pre: same extents.
[[nodiscard]] LoopNest loops_of(const Region& source, const Region& target);

/// Takes the innermost loop out of the nest if it is contiguous on both sides. Returns the bytes that move as one run.
[[nodiscard]] Index take_run(LoopNest& nest);

/// The innermost part of a copy, moved by one call of a kernel. A unit moves as a whole: an element, or a short run.
/// With a cast a unit is a line of elements, and its bytes are those in the target.
struct Leaf {
    bool transposed = false;  ///< source and target run along different dimensions: `plane`, otherwise `rows`
    Index unit_bytes = 1;
    Rows rows;
    Plane plane;
    ElementCast cast = {};
    LoopNest::Loop line = {1, 0, 0};  ///< the elements of a row that is cast
};

void run_leaf(const Leaf& leaf, Store store, const std::byte* source, std::byte* target);

/// Splits a nest into loops around a leaf. Takes the leaf's loops out of the nest; the others keep their order.
[[nodiscard]] Leaf take_leaf(LoopNest& nest, const ElementCast& cast = {});

/// Copies the elements of one region to another, and may cast them. pre: the regions do not overlap in memory; their
/// elements have one size, or the sizes of the cast.
class BoxCopy {
public:
    BoxCopy(const Region& source, const Region& target, const ElementCast& cast = {});
    void run(const std::byte* source, std::byte* target, Store store = Store::cached) const;
    /// True if it moves more than one run of bytes, at one distance on each side, and casts nothing.
    [[nodiscard]] bool in_rows() const;

private:
    friend class DealtCopies;
    LoopNest nest_;  // without the leaf's loops
    Leaf leaf_;
};

/// Copies that run together. If their rows lie side by side in the source, they move row by row in turn. So the source
/// is read once, in its order, however many copies want it.
class DealtCopies {
public:
    /// The copy must live until the next run.
    void add(const BoxCopy& copy, const std::byte* source, std::byte* target);
    /// Runs the copies that were added since the last run.
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

/// The bytes of one element; bytes past its size mean nothing.
using Pattern = std::array<std::byte, 16>;

/// The pattern of one element. pre: `element` has its bytes, at most 16.
[[nodiscard]] inline Pattern pattern_of(std::span<const std::byte> element) {
    Pattern pattern{};
    std::ranges::copy(element, pattern.begin());
    return pattern;
}

/// The element that leaves every other one as it is: 0 for sums, 1 for products, the lowest for max and the highest for
/// min (infinities for floats). pre: dtype and combination fit each other (can_reduce).
[[nodiscard]] Pattern identity_of(DType dtype, Combine combine);

/// Sets every element of a region to one value: zero, which is the value 0 (and false) of every dtype, or a pattern.
class BoxFill {
public:
    explicit BoxFill(const Region& target, const Pattern& pattern = {});
    void run(std::byte* target) const;

private:
    LoopNest nest_;
    Index run_bytes_;
    Pattern pattern_;
};

/// Combines the elements of one region into another: target = combine(target, source), as elements.hpp defines it.
class BoxCombine {
public:
    /// pre: combine is not copy; dtype and combination fit each other (can_reduce).
    BoxCombine(DType dtype, Combine combine, const Region& source, const Region& target);
    void run(const std::byte* source, std::byte* target) const;

private:
    DType dtype_;
    Combine combine_;
    LoopNest nest_;
};

/// target[i] = combine(target[i], source[i]) along one loop. Null if dtype and combination do not fit each other.
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

/// Runs leaf(source, target) for every combination of the loops' indices, with the last loop fastest.
template <class Source, class Leaf>
void for_each(std::span<const LoopNest::Loop> loops, Source* source, std::byte* target, const Leaf& leaf) {
    if (loops.empty()) return leaf(source, target);
    const LoopNest::Loop loop = loops.front();
    for (Index i = 0; i < loop.extent; ++i) {
        for_each(loops.subspan(1), source + i * loop.source_stride, target + i * loop.target_stride, leaf);
    }
}

}  // namespace reshard
