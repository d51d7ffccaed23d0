#include "src/copy/copy.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace reshard {
namespace {

using Loop = LoopNest::Loop;

// Two loops are one if the outer loop continues where the inner loop ends, on both sides.
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

bool is_register_unit(Index bytes) { return bytes <= 16 && std::has_single_bit(static_cast<std::uint64_t>(bytes)); }

using Found = std::vector<Loop>::iterator;

// Source and target run along different dimensions: one loop walks the source unit by unit, another the target.
struct Turned {
    Found source_run;
    Found target_run;
};

std::optional<Turned> find_transposed(std::vector<Loop>& loops, Index source_unit, Index target_unit) {
    if (!is_register_unit(source_unit)) return std::nullopt;
    const auto source_run = std::ranges::find(loops, source_unit, &Loop::source_stride);
    const auto target_run = std::ranges::find(loops, target_unit, &Loop::target_stride);
    if (source_run == loops.end() || target_run == loops.end() || source_run == target_run) return std::nullopt;
    return Turned{source_run, target_run};
}

// Transposes blocks in the first cache, and casts them on their way out. A block has target runs of several lines.
void cast_plane(const Leaf& leaf, Store store, const std::byte* source, std::byte* target) {
    constexpr Index runs = 16;
    constexpr Index run = 256;
    constexpr Index largest_element = 8;
    alignas(line_bytes) std::array<std::byte, runs * run * largest_element> block;
    const Plane& plane = leaf.plane;
    const auto [from, to, lines] = leaf.cast;
    const auto unit = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(from)));
    const auto turn = copy_kernels().transpose[static_cast<std::size_t>(Store::cached)][unit];
    for (Index j = 0; j < plane.inner; j += run) {
        for (Index i = 0; i < plane.outer; i += runs) {
            const Plane part{std::min(runs, plane.outer - i), std::min(run, plane.inner - j), plane.source_stride,
                             run * from};
            turn(part, source + i * from + j * plane.source_stride, block.data());
            std::byte* const into = target + i * plane.target_stride + j * to;
            for (Index row = 0; row < part.outer; ++row)
                lines[static_cast<std::size_t>(store)](part.inner, from, to, block.data() + row * part.target_stride,
                                                       into + row * plane.target_stride);
        }
    }
}

void cast_rows(const Leaf& leaf, Store store, const std::byte* source, std::byte* target) {
    const CastLine cast = leaf.cast.lines[static_cast<std::size_t>(store)];
    for (Index row = 0; row < leaf.rows.count; ++row)
        cast(leaf.line.extent, leaf.line.source_stride, leaf.line.target_stride, source + row * leaf.rows.source_stride,
             target + row * leaf.rows.target_stride);
}

template <int bytes>
void copy_units(const Rows& given, const std::byte* source, std::byte* target) {
    const Rows rows = given;  // the compiler knows that no copy writes it
    for (Index row = 0; row < rows.count; ++row)
        std::memcpy(target + row * rows.target_stride, source + row * rows.source_stride, bytes);
}

// Copies a few short rows, as small moves have them. The way to a kernel would take longer. False if they are others.
bool copy_words(const Leaf& leaf, const std::byte* source, std::byte* target) {
    constexpr Index rows_max = 8;
    if (leaf.transposed || leaf.cast || leaf.rows.count > rows_max) return false;
    switch (leaf.rows.bytes) {
        case 8:
            copy_units<8>(leaf.rows, source, target);
            return true;
        case 16:
            copy_units<16>(leaf.rows, source, target);
            return true;
        case 32:
            copy_units<32>(leaf.rows, source, target);
            return true;
        default:
            return false;
    }
}

}  // namespace

Region region_of(const Slot& slot, const Box& box, Index element_bytes) {
    assert(contains(slot.tile, box));
    const bool whole = slot.boxes.empty();
    const PlacedBox* placed = whole ? nullptr : &slot.boxes[static_cast<std::size_t>(box[slot.numbered_by].begin)];
    const Storage& storage = whole ? slot.storage : placed->storage;
    const Index offset = offset_of(storage, whole ? slot.tile : as_tile(placed->box), box);
    Region region{slot.offset_bytes + offset * element_bytes, element_bytes, {}, {}};
    for (std::size_t k = 0; k < box.size(); ++k) {
        region.extents.push_back(box[k].size());
        region.strides_bytes.push_back(storage.strides[k] * element_bytes);
    }
    return region;
}

Region packed_region(const Box& box, Index element_bytes, Index offset_bytes) {
    const Tile tile = as_tile(box);
    return region_of({BufferId::workspace, offset_bytes, tile, row_major(tile)}, box, element_bytes);
}

Region within(const Region& region, const Box& box, const Box& part) {
    Region inside = region;
    for (std::size_t k = 0; k < box.size(); ++k) {
        inside.offset_bytes += (part[k].begin - box[k].begin) * region.strides_bytes[k];
        inside.extents[k] = part[k].size();
    }
    return inside;
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
    assert(source.element_bytes == target.element_bytes);
    return loops_of(source, target);
}

LoopNest loops_of(const Region& source, const Region& target) {
    assert(source.extents == target.extents);
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

Index take_run(LoopNest& nest) {
    if (nest.loops.empty()) return nest.element_bytes;
    const Loop inner = nest.loops.back();
    if (inner.source_stride != nest.element_bytes || inner.target_stride != nest.element_bytes) {
        return nest.element_bytes;
    }
    nest.loops.pop_back();
    return inner.extent * nest.element_bytes;
}

Leaf take_leaf(LoopNest& nest, const ElementCast& cast) {
    Leaf leaf;
    leaf.cast = cast;
    leaf.unit_bytes = cast ? cast.to_bytes : take_run(nest);
    std::vector<Loop>& loops = nest.loops;
    if (const auto transposed = find_transposed(loops, cast ? cast.from_bytes : leaf.unit_bytes, leaf.unit_bytes)) {
        leaf.transposed = true;
        const auto [source_run, target_run] = *transposed;
        leaf.plane = {source_run->extent, target_run->extent, target_run->source_stride, source_run->target_stride};
        loops.erase(std::max(source_run, target_run));
        loops.erase(std::min(source_run, target_run));
        return leaf;
    }
    if (cast && !loops.empty()) {
        leaf.line = loops.back();
        leaf.unit_bytes *= leaf.line.extent;
        loops.pop_back();
    }
    leaf.rows = {1, leaf.unit_bytes, 0, 0};
    if (!loops.empty()) {
        leaf.rows = {loops.back().extent, leaf.unit_bytes, loops.back().source_stride, loops.back().target_stride};
        loops.pop_back();
    }
    return leaf;
}

void run_leaf(const Leaf& leaf, Store store, const std::byte* source, std::byte* target) {
    if (leaf.cast && leaf.transposed) return cast_plane(leaf, store, source, target);
    if (leaf.cast) return cast_rows(leaf, store, source, target);
    const CopyKernels& kernels = copy_kernels();
    const auto how = static_cast<std::size_t>(store);
    if (!leaf.transposed) return kernels.rows[how](leaf.rows, source, target);
    const auto unit = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(leaf.unit_bytes)));
    kernels.transpose[how][unit](leaf.plane, source, target);
}

BoxCopy::BoxCopy(const Region& source, const Region& target, const ElementCast& cast)
    : nest_(cast ? loops_of(source, target) : loop_nest(source, target)), leaf_(take_leaf(nest_, cast)) {}

void BoxCopy::run(const std::byte* source, std::byte* target, Store store) const {
    if (nest_.empty) return;
    if (nest_.loops.empty() && store == Store::cached &&
        copy_words(leaf_, source + nest_.source_offset, target + nest_.target_offset))
        return;
    for_each(std::span(nest_.loops), source + nest_.source_offset, target + nest_.target_offset,
             [&](const std::byte* from, std::byte* to) { run_leaf(leaf_, store, from, to); });
}

bool BoxCopy::in_rows() const {
    return !nest_.empty && nest_.loops.empty() && !leaf_.cast && !leaf_.transposed && leaf_.rows.count > 1;
}

void DealtCopies::add(const BoxCopy& copy, const std::byte* source, std::byte* target) {
    added_.push_back({&copy, source, target});
}

// Adds a copy as a lane beside the other lanes, which have `rows` rows. False if it does not fit there.
bool DealtCopies::deal(const Added& added, std::int64_t& rows) {
    const LoopNest& nest = added.copy->nest_;
    const Leaf& leaf = added.copy->leaf_;
    if (!added.copy->in_rows()) return false;
    const Lane lane{added.source + nest.source_offset, added.target + nest.target_offset, leaf.rows.source_stride,
                    leaf.rows.target_stride, leaf.rows.bytes};
    if (!lanes_.empty()) {
        const Lane& first = lanes_.front();
        const bool beside = rows == leaf.rows.count && first.source_stride == lane.source_stride &&
                            std::abs(lane.source - first.source) < std::abs(lane.source_stride);
        if (!beside) return false;
    }
    rows = leaf.rows.count;
    lanes_.push_back(lane);
    return true;
}

void DealtCopies::run(Store store) {
    for (std::size_t next = 0; next < added_.size();) {
        std::int64_t rows = 0;
        lanes_.clear();
        const std::size_t first = next;
        while (next < added_.size() && deal(added_[next], rows)) ++next;
        if (next > first + 1) {
            copy_kernels().deal[static_cast<std::size_t>(store)](lanes_, rows);
        } else {
            next = first + 1;
            added_[first].copy->run(added_[first].source, added_[first].target, store);
        }
    }
    added_.clear();
}

BoxFill::BoxFill(const Region& target, const Pattern& pattern)
    : nest_(loop_nest(target, target)), run_bytes_(take_run(nest_)), pattern_(pattern) {}

void BoxFill::run(std::byte* target) const {
    if (nest_.empty) return;
    const auto bytes = static_cast<std::size_t>(run_bytes_);
    std::byte* start = target + nest_.target_offset;
    if (pattern_ == Pattern{}) {
        return for_each(std::span(nest_.loops), start, start,
                        [bytes](std::byte*, std::byte* to) { std::memset(to, 0, bytes); });
    }
    const auto element = static_cast<std::size_t>(nest_.element_bytes);
    for_each(std::span(nest_.loops), start, start, [&](std::byte*, std::byte* to) {
        for (std::size_t at = 0; at < bytes; at += element) std::memcpy(to + at, pattern_.data(), element);
    });
}

}  // namespace reshard
