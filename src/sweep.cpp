#include "sweep.hpp"

#include <algorithm>

namespace reshard {
namespace {

using Loop = LoopNest::Loop;

// A block reaches over so many bytes of the tile: what one other memory takes of it stays in the first cache for those
// that take its neighbours.
constexpr Index block_span = Index{16} << 10;

Index stride_in_tile(const Loop& loop, Sweep::Kind kind) {
    return kind == Sweep::Kind::push ? loop.source_stride : loop.target_stride;
}

Index offset_in_tile(const LoopNest& nest, Sweep::Kind kind) {
    return kind == Sweep::Kind::push ? nest.source_offset : nest.target_offset;
}

bool same_loops(const LoopNest& a, const LoopNest& b) {
    return std::ranges::equal(a.loops, b.loops, [](const Loop& x, const Loop& y) {
        return x.extent == y.extent && x.source_stride == y.source_stride && x.target_stride == y.target_stride;
    });
}

// The block of at most `rows` rows of a leaf.
Leaf first_rows(Leaf leaf, Index rows) {
    if (leaf.turned) {
        leaf.plane.inner = rows;
    } else {
        leaf.rows.count = rows;
    }
    return leaf;
}

}  // namespace

void Sweep::add(std::size_t memory, const Region& source, const Region& target) {
    LoopNest nest = loop_nest(source, target);
    if (nest.empty) return;
    bytes_ += bytes_of(source);
    nests_.emplace_back(memory, std::move(nest));
}

// Boxes of one shape at one distance from each other, as of block-cyclic tiles, are one nest with a loop more.
void Sweep::merge_repeated() {
    for (bool merged = true; merged;) {
        merged = false;
        std::vector<std::pair<std::size_t, LoopNest>> kept;
        for (std::size_t i = 0; i < nests_.size();) {
            auto& [memory, nest] = nests_[i];
            std::size_t next = i + 1;
            Loop loop{1, 0, 0};
            for (; next < nests_.size(); ++next) {
                const auto& [other_memory, other] = nests_[next];
                const Index source = other.source_offset - nest.source_offset;
                const Index target = other.target_offset - nest.target_offset;
                if (next == i + 1) loop = {1, source, target};
                if (other_memory != memory || source <= 0 || target <= 0 || !same_loops(nest, other)) break;
                if (source != loop.source_stride * loop.extent || target != loop.target_stride * loop.extent) break;
                ++loop.extent;
            }
            if (loop.extent > 1) {
                nest.loops.push_back(loop);
                std::ranges::sort(nest.loops, [](const Loop& a, const Loop& b) {
                    return std::pair(a.target_stride, a.source_stride) > std::pair(b.target_stride, b.source_stride);
                });
                merged = true;
            }
            kept.push_back(std::move(nests_[i]));
            i += static_cast<std::size_t>(std::max<Index>(loop.extent, 1));
        }
        nests_ = std::move(kept);
    }
}

Sweep::Part Sweep::part_of(std::size_t memory, LoopNest nest) const {
    Part part{memory, nest.source_offset, nest.target_offset, {}, {}, {}};
    Leaf leaf = take_leaf(nest);
    const bool push = kind_ == Kind::push;
    std::ranges::stable_sort(
        nest.loops, [&](const Loop& a, const Loop& b) { return stride_in_tile(a, kind_) > stride_in_tile(b, kind_); });
    if (!leaf.turned && leaf.rows.count == 1 && !nest.loops.empty()) {
        const Loop inner = nest.loops.back();
        nest.loops.pop_back();
        leaf.rows = {inner.extent, leaf.unit_bytes, inner.source_stride, inner.target_stride};
    }
    const Index rows = leaf.turned ? leaf.plane.inner : leaf.rows.count;
    const Loop row = leaf.turned ? Loop{rows, leaf.plane.source_stride, leaf.unit_bytes}
                                 : Loop{rows, leaf.rows.source_stride, leaf.rows.target_stride};
    // A turned block is as wide as a few cache lines at least, so that its target runs are whole lines.
    const Index least = leaf.turned ? std::max<Index>(256 / leaf.unit_bytes, 1) : 1;
    const Index stride = std::max<Index>(push || leaf.turned ? row.source_stride : row.target_stride, 1);
    const Index block = std::min(rows, std::max(least, block_span / stride));
    part.loops = std::move(nest.loops);
    part.loops.push_back({(rows + block - 1) / block, row.source_stride * block, row.target_stride * block});
    part.block = first_rows(leaf, block);
    part.last_block = first_rows(leaf, rows - (rows - 1) / block * block);
    return part;
}

void Sweep::arrange() {
    std::ranges::stable_sort(nests_, [&](const auto& a, const auto& b) {
        return std::pair(a.first, offset_in_tile(a.second, kind_)) <
               std::pair(b.first, offset_in_tile(b.second, kind_));
    });
    merge_repeated();
    for (auto& [memory, nest] : nests_) parts_.push_back(part_of(memory, std::move(nest)));
    nests_.clear();
    for (const Part& part : parts_) cursors_.push_back({0, 0, std::vector<Index>(part.loops.size())});
    order_.reserve(parts_.size());
}

Index Sweep::place(std::size_t part) const {
    return kind_ == Kind::push ? cursors_[part].source : cursors_[part].target;
}

// False at the end, where every loop is back at its start.
bool Sweep::advance(std::size_t part) {
    Cursor& cursor = cursors_[part];
    const std::vector<Loop>& loops = parts_[part].loops;
    for (std::size_t k = loops.size(); k-- > 0;) {
        cursor.source += loops[k].source_stride;
        cursor.target += loops[k].target_stride;
        if (++cursor.at[k] < loops[k].extent) return true;
        cursor.source -= loops[k].source_stride * loops[k].extent;
        cursor.target -= loops[k].target_stride * loops[k].extent;
        cursor.at[k] = 0;
    }
    return false;
}

template <class Visit>
void Sweep::walk(const Visit& visit) {
    order_.clear();
    const auto later = [&](std::size_t a, std::size_t b) { return std::pair(place(a), a) > std::pair(place(b), b); };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        cursors_[i].source = parts_[i].source_offset;
        cursors_[i].target = parts_[i].target_offset;
        order_.push_back(i);
    }
    std::ranges::make_heap(order_, later);
    while (!order_.empty()) {
        std::ranges::pop_heap(order_, later);
        const std::size_t next = order_.back();
        const Part& part = parts_[next];
        const Cursor& cursor = cursors_[next];
        const bool last = cursor.at.back() + 1 == part.loops.back().extent;
        visit(part.memory, last ? part.last_block : part.block, cursor.source, cursor.target);
        if (advance(next)) {
            std::ranges::push_heap(order_, later);
        } else {
            order_.pop_back();
        }
    }
}

void Sweep::push(const std::byte* tile, std::span<std::byte* const> others, Store store) {
    walk([&](std::size_t memory, const Leaf& leaf, Index source, Index target) {
        if (others[memory] != nullptr) run_leaf(leaf, store, tile + source, others[memory] + target);
    });
}

void Sweep::pull(std::byte* tile, std::span<const std::byte* const> others, Store store) {
    walk([&](std::size_t memory, const Leaf& leaf, Index source, Index target) {
        if (others[memory] != nullptr) run_leaf(leaf, store, others[memory] + source, tile + target);
    });
}

}  // namespace reshard
