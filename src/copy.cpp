#include "copy.hpp"

#include <algorithm>
#include <cstring>

namespace reshard {
namespace {

using Loop = LoopNest::Loop;

// Two loops are one when the outer one takes up where the inner one ends, on both sides.
bool continues(const Loop& outer, const Loop& inner) {
    return outer.source_stride == inner.source_stride * inner.extent &&
           outer.target_stride == inner.target_stride * inner.extent;
}

void merge_loops(std::vector<Loop>& loops) {
    for (std::size_t i = loops.size(); i-- > 1;) {
        if (!continues(loops[i - 1], loops[i])) continue;
        loops[i].extent *= loops[i - 1].extent;
        loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
}

// Takes the innermost loop out of the nest when it is contiguous on both sides: its bytes move as one run.
Index take_run(LoopNest& nest) {
    if (nest.loops.empty()) return nest.element_bytes;
    const Loop inner = nest.loops.back();
    if (inner.source_stride != nest.element_bytes || inner.target_stride != nest.element_bytes) {
        return nest.element_bytes;
    }
    nest.loops.pop_back();
    return inner.extent * nest.element_bytes;
}

// When source and target run along different dimensions, no loop order is good for both. The loop that is innermost in
// the source becomes the second innermost here, and the two are walked in blocks that fit the first cache.
void put_source_run_second(std::vector<Loop>& loops) {
    if (loops.size() < 3) return;
    const auto minor = std::min_element(loops.begin(), loops.end(),
                                        [](const Loop& a, const Loop& b) { return a.source_stride < b.source_stride; });
    if (minor < loops.end() - 2) std::rotate(minor, minor + 1, loops.end() - 1);
}

constexpr Index block_elements = 16;  // 16 x 16 beats larger blocks at power-of-two strides, where lines collide

template <class Unit>
void copy_unit(const std::byte* source, std::byte* target) {
    Unit unit;
    std::memcpy(&unit, source, sizeof unit);
    std::memcpy(target, &unit, sizeof unit);
}

template <class Unit>
void copy_line(const Loop& loop, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < loop.extent; ++i) {
        copy_unit<Unit>(source + i * loop.source_stride, target + i * loop.target_stride);
    }
}

// A plane whose source is contiguous along `outer` and whose target is along `inner`.
template <class Unit>
void copy_plane(const Loop& outer, const Loop& inner, const std::byte* source, std::byte* target) {
    for (Index i = 0; i < outer.extent; i += block_elements) {
        const Index rows = std::min(block_elements, outer.extent - i);
        for (Index j = 0; j < inner.extent; j += block_elements) {
            const Loop line{std::min(block_elements, inner.extent - j), inner.source_stride, inner.target_stride};
            for (Index row = i; row < i + rows; ++row) {
                copy_line<Unit>(line, source + row * outer.source_stride + j * inner.source_stride,
                                target + row * outer.target_stride + j * inner.target_stride);
            }
        }
    }
}

template <class Unit>
void copy_units(std::span<const Loop> loops, const std::byte* source, std::byte* target) {
    if (loops.empty()) return copy_unit<Unit>(source, target);
    const Loop inner = loops.back();
    if (loops.size() == 1) return copy_line<Unit>(inner, source, target);
    const Loop outer = loops[loops.size() - 2];
    if (outer.source_stride >= inner.source_stride) {
        return for_each(loops.first(loops.size() - 1), source, target,
                        [&](const std::byte* from, std::byte* to) { copy_line<Unit>(inner, from, to); });
    }
    for_each(loops.first(loops.size() - 2), source, target,
             [&](const std::byte* from, std::byte* to) { copy_plane<Unit>(outer, inner, from, to); });
}

struct Unit16 {
    std::uint64_t half[2];
};

}  // namespace

Region region_of(const Slot& slot, const Box& box, Index element_bytes) {
    Region region{slot.offset_bytes + slot.storage.offset * element_bytes, element_bytes, {}, {}};
    for (std::size_t k = 0; k < box.size(); ++k) {
        const Index stride = slot.storage.strides[k] * element_bytes;
        region.offset_bytes += (box[k].begin - slot.tile[k].begin) * stride;
        region.extents.push_back(box[k].size());
        region.strides_bytes.push_back(stride);
    }
    return region;
}

Region packed_region(const Box& box, Index element_bytes) {
    return region_of({Place::workspace, 0, box, row_major(box)}, box, element_bytes);
}

Index bytes_of(const Region& region) {
    Index bytes = region.element_bytes;
    for (const Index extent : region.extents) bytes *= extent;
    return bytes;
}

Region coalesce(const Region& region) {
    Region merged{region.offset_bytes, region.element_bytes, {}, {}};
    for (std::size_t k = 0; k < region.extents.size(); ++k) {
        const Index extent = region.extents[k];
        const Index stride = region.strides_bytes[k];
        if (extent == 1) continue;
        if (!merged.extents.empty() && merged.strides_bytes.back() == stride * extent) {
            merged.extents.back() *= extent;
            merged.strides_bytes.back() = stride;
        } else {
            merged.extents.push_back(extent);
            merged.strides_bytes.push_back(stride);
        }
    }
    return merged;
}

bool contiguous(const Region& region) {
    if (bytes_of(region) == 0) return true;
    const Region merged = coalesce(region);
    return merged.extents.empty() ||
           (merged.extents.size() == 1 && merged.strides_bytes.front() == merged.element_bytes);
}

LoopNest loop_nest(const Region& source, const Region& target) {
    LoopNest nest{source.offset_bytes, target.offset_bytes, source.element_bytes, false, {}};
    for (std::size_t k = 0; k < source.extents.size(); ++k) {
        if (source.extents[k] == 0) nest.empty = true;
        if (source.extents[k] > 1) {
            nest.loops.push_back({source.extents[k], source.strides_bytes[k], target.strides_bytes[k]});
        }
    }
    std::stable_sort(nest.loops.begin(), nest.loops.end(), [](const Loop& a, const Loop& b) {
        return std::pair(a.target_stride, a.source_stride) > std::pair(b.target_stride, b.source_stride);
    });
    if (!nest.empty) merge_loops(nest.loops);
    return nest;
}

BoxCopy::BoxCopy(const Region& source, const Region& target)
    : nest_(loop_nest(source, target)), run_bytes_(take_run(nest_)) {
    put_source_run_second(nest_.loops);
}

void BoxCopy::run(const std::byte* source, std::byte* target) const {
    if (nest_.empty) return;
    source += nest_.source_offset;
    target += nest_.target_offset;
    switch (run_bytes_) {
        case 1:
            return copy_units<std::uint8_t>(nest_.loops, source, target);
        case 2:
            return copy_units<std::uint16_t>(nest_.loops, source, target);
        case 4:
            return copy_units<std::uint32_t>(nest_.loops, source, target);
        case 8:
            return copy_units<std::uint64_t>(nest_.loops, source, target);
        case 16:
            return copy_units<Unit16>(nest_.loops, source, target);
        default:
            break;
    }
    const auto bytes = static_cast<std::size_t>(run_bytes_);
    for_each(std::span(nest_.loops), source, target,
             [bytes](const std::byte* from, std::byte* to) { std::memcpy(to, from, bytes); });
}

BoxFill::BoxFill(const Region& target) : nest_(loop_nest(target, target)), run_bytes_(take_run(nest_)) {}

void BoxFill::run(std::byte* target) const {
    if (nest_.empty) return;
    const auto bytes = static_cast<std::size_t>(run_bytes_);
    std::byte* start = target + nest_.target_offset;
    for_each(std::span(nest_.loops), start, start, [bytes](std::byte*, std::byte* to) { std::memset(to, 0, bytes); });
}

}  // namespace reshard
