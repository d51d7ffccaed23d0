#include "src/copy/multi_copy.hpp"

#include <algorithm>

namespace reshard {
namespace {

using NestLoop = LoopNest::Loop;

// A block spans so many bytes of the tile. Lines that one memory shares with its neighbours then stay in the first
// cache until the neighbours take their parts.
constexpr Index block_span = Index{64} << 10;
// A block moves at least so many bytes, counted in whole lines: it costs as much as several lines to begin one.
constexpr Index block_bytes = Index{4} << 10;

Index stride_in_tile(const NestLoop& loop, MultiCopy::Kind kind) {
    return kind == MultiCopy::Kind::push ? loop.source_stride : loop.target_stride;
}

Index offset_in_tile(const LoopNest& nest, MultiCopy::Kind kind) {
    return kind == MultiCopy::Kind::push ? nest.source_offset : nest.target_offset;
}

bool same_loops(const LoopNest& a, const LoopNest& b) {
    return std::ranges::equal(a.loops, b.loops, [](const NestLoop& x, const NestLoop& y) {
        return x.extent == y.extent && x.source_stride == y.source_stride && x.target_stride == y.target_stride;
    });
}

}  // namespace

void MultiCopy::add(std::size_t memory, const Region& source, const Region& target) {
    LoopNest nest = cast_ ? loops_of(source, target) : loop_nest(source, target);
    if (nest.empty) return;
    bytes_ += bytes_of(source);
    nests_.emplace_back(memory, std::move(nest));
}

// Boxes of one shape at one distance from each other, as in block-cyclic tiles, become one nest with one more loop.
void MultiCopy::merge_repeated() {
    for (bool merged = true; merged;) {
        merged = false;
        std::vector<std::pair<std::size_t, LoopNest>> kept;
        for (std::size_t i = 0; i < nests_.size();) {
            auto& [memory, nest] = nests_[i];
            std::size_t next = i + 1;
            NestLoop loop{1, 0, 0};
            for (; next < nests_.size(); ++next) {
                const auto& [unregistered_buffers, other] = nests_[next];
                const Index source = other.source_offset - nest.source_offset;
                const Index target = other.target_offset - nest.target_offset;
                if (next == i + 1) loop = {1, source, target};
                if (unregistered_buffers != memory || source <= 0 || target <= 0 || !same_loops(nest, other)) break;
                if (source != loop.source_stride * loop.extent || target != loop.target_stride * loop.extent) break;
                ++loop.extent;
            }
            if (loop.extent > 1) {
                nest.loops.push_back(loop);
                std::ranges::sort(nest.loops, [](const NestLoop& a, const NestLoop& b) {
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

MultiCopy::Part MultiCopy::part_of(std::size_t memory, LoopNest nest) const {
    const bool push = kind_ == Kind::push;
    const Leaf leaf = take_leaf(nest, cast_);
    std::ranges::stable_sort(nest.loops, [&](const NestLoop& a, const NestLoop& b) {
        return stride_in_tile(a, kind_) > stride_in_tile(b, kind_);
    });
    NestLoop row{leaf.rows.count, leaf.rows.source_stride, leaf.rows.target_stride};
    if (leaf.transposed) {
        row = {leaf.plane.inner, leaf.plane.source_stride, leaf.unit_bytes};
    } else if (row.extent == 1 && !nest.loops.empty()) {
        row = nest.loops.back();
        nest.loops.pop_back();
    }
    Part part;
    Share share{memory, nest.source_offset, nest.target_offset, {}, 0, leaf.unit_bytes};
    if (!push) std::swap(share.tile_offset, share.other_offset);
    for (const NestLoop& loop : nest.loops) {
        part.loops.push_back({loop.extent, stride_in_tile(loop, kind_)});
        share.other_strides.push_back(push ? loop.target_stride : loop.source_stride);
    }
    part.rows = row.extent;
    part.tile_row_stride = stride_in_tile(row, kind_);
    share.other_row_stride = push ? row.target_stride : row.source_stride;
    part.shares.push_back(std::move(share));
    if (leaf.transposed || leaf.cast) part.alone = leaf;
    // The target runs of a transposed block are many cache lines long, since it is slow to change places in memory.
    const Index row_bytes = std::max(leaf.unit_bytes, line_bytes);
    const Index least = std::max<Index>(leaf.transposed ? 2048 / leaf.unit_bytes : block_bytes / row_bytes, 1);
    const Index span = std::max<Index>(leaf.transposed ? row.source_stride : part.tile_row_stride, 1);
    part.block_rows = std::min(part.rows, std::max(least, block_span / span));
    if (part.alone || part.loops.empty() || part.block_rows < part.rows) return part;
    const Index turn_span = std::max<Index>(part.loops.back().tile_stride, 1);
    const Index turns = std::max<Index>(block_bytes * 4 / (part.rows * row_bytes), block_span / turn_span);
    part.block_turns = std::clamp<Index>(turns, 1, part.loops.back().extent);
    return part;
}

// True if `other` starts within the first row of `part`, and both repeat in the same way in the tile.
bool MultiCopy::joins(const Part& part, const Part& other) {
    if (part.alone || other.alone || part.rows != other.rows || part.loops.size() != other.loops.size()) return false;
    const Index distance = other.shares.front().tile_offset - part.shares.front().tile_offset;
    if (part.rows > 1 && part.tile_row_stride != other.tile_row_stride) return false;
    if (part.rows > 1 && distance >= part.tile_row_stride) return false;
    return std::ranges::equal(part.loops, other.loops, [](const Loop& a, const Loop& b) {
        return a.extent == b.extent && a.tile_stride == b.tile_stride;
    });
}

void MultiCopy::arrange() {
    std::ranges::stable_sort(nests_, {},
                             [&](const auto& one) { return std::pair(one.first, offset_in_tile(one.second, kind_)); });
    merge_repeated();
    std::vector<Part> alone;
    for (auto& [memory, nest] : nests_) alone.push_back(part_of(memory, std::move(nest)));
    nests_.clear();
    std::ranges::stable_sort(alone, {}, [](const Part& part) { return part.shares.front().tile_offset; });
    std::size_t most_shares = 0;
    for (Part& part : alone) {
        if (!parts_.empty() && joins(parts_.back(), part)) {
            parts_.back().shares.push_back(std::move(part.shares.front()));
        } else {
            parts_.push_back(std::move(part));
        }
        most_shares = std::max(most_shares, parts_.back().shares.size());
    }
    for (const Part& part : parts_) cursors_.push_back({0, 0, std::vector<Index>(part.loops.size())});
    order_.reserve(parts_.size());
    lanes_.resize(most_shares);
    jumps_.resize(most_shares);
}

// The last part that is left has nobody to give a turn to.
MultiCopy::Block MultiCopy::block_at(const Part& part, const Cursor& cursor, bool last) {
    const Index left = part.rows - cursor.row;
    const bool whole = last && !part.alone;
    Block block{whole ? left : std::min(part.block_rows, left), 1};
    const Index turns = whole ? index_max : part.block_turns;
    if (turns > 1 && block.rows == part.rows && !part.loops.empty())
        block.turns = std::min(turns, part.loops.back().extent - cursor.at.back());
    return block;
}

// Goes on by a block. False at the end, when every loop is back at its start.
bool MultiCopy::advance(std::size_t number, const Block& block) {
    const Part& part = parts_[number];
    Cursor& cursor = cursors_[number];
    cursor.row += block.rows;
    cursor.place += block.rows * part.tile_row_stride;
    if (cursor.row < part.rows) return true;
    cursor.row = 0;
    cursor.place -= part.rows * part.tile_row_stride;
    Index turns = block.turns;
    for (std::size_t k = part.loops.size(); k-- > 0; turns = 1) {
        cursor.at[k] += turns;
        cursor.place += turns * part.loops[k].tile_stride;
        if (cursor.at[k] < part.loops[k].extent) return true;
        cursor.place -= part.loops[k].tile_stride * part.loops[k].extent;
        cursor.at[k] = 0;
    }
    return false;
}

template <class Visit>
void MultiCopy::walk(const Visit& visit) {
    order_.clear();
    const auto later = [&](std::size_t a, std::size_t b) {
        return std::pair(cursors_[a].place, a) > std::pair(cursors_[b].place, b);
    };
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        cursors_[i].place = parts_[i].shares.front().tile_offset;
        order_.push_back(i);
    }
    std::ranges::make_heap(order_, later);
    while (!order_.empty()) {
        std::ranges::pop_heap(order_, later);
        const std::size_t next = order_.back();
        const Part& part = parts_[next];
        const Block block = block_at(part, cursors_[next], order_.size() == 1);
        visit(part, cursors_[next], block);
        if (advance(next, block)) {
            std::ranges::push_heap(order_, later);
        } else {
            order_.pop_back();
        }
    }
}

// `at(memory, place in the tile, place in the other)` returns the source and the target of a lane; null if the memory
// is left out.
template <class At>
void MultiCopy::move(const Part& part, const Cursor& cursor, const Block& block, Store store, const At& at) {
    const auto [rows, turns] = block;
    std::size_t used = 0;
    for (const Share& share : part.shares) {
        Index other = share.other_offset + cursor.row * share.other_row_stride;
        for (std::size_t k = 0; k < cursor.at.size(); ++k) other += cursor.at[k] * share.other_strides[k];
        const auto [source, target] =
            at(share.memory, cursor.place + share.tile_offset - part.shares.front().tile_offset, other);
        if (target == nullptr || source == nullptr) continue;
        Lane& lane = lanes_[used];
        lane.source = source;
        lane.target = target;
        lane.bytes = share.run_bytes;
        lane.source_stride = kind_ == Kind::push ? part.tile_row_stride : share.other_row_stride;
        lane.target_stride = kind_ == Kind::push ? share.other_row_stride : part.tile_row_stride;
        const Index in_tile = turns > 1 ? part.loops.back().tile_stride - rows * part.tile_row_stride : 0;
        const Index in_other = turns > 1 ? share.other_strides.back() - rows * share.other_row_stride : 0;
        jumps_[used++] = kind_ == Kind::push ? Jump{in_tile, in_other} : Jump{in_other, in_tile};
    }
    const std::span<Lane> lanes = std::span(lanes_).first(used);
    if (part.alone) {
        for (const Lane& lane : lanes) move_alone(part, cursor.row, rows, store, lane);
        return;
    }
    const auto deal = copy_kernels().deal[static_cast<std::size_t>(store)];
    deal(lanes, rows);
    for (Index turn = 1; turn < turns; ++turn) {
        for (std::size_t i = 0; i < used; ++i) {
            lanes[i].source += jumps_[i].source;
            lanes[i].target += jumps_[i].target;
        }
        deal(lanes, rows);
    }
}

void MultiCopy::move_alone(const Part& part, Index row, Index rows, Store store, const Lane& lane) {
    if (part.alone->transposed) return move_transposed(part, row, rows, store, lane);
    Leaf block = *part.alone;
    block.rows = {rows, lane.bytes, lane.source_stride, lane.target_stride};
    run_leaf(block, store, lane.source, lane.target);
}

// Blocks of a target run that begins inside a line are shifted to the next line. So only the first and the last line of
// a run are written in parts.
void MultiCopy::move_transposed(const Part& part, Index row, Index rows, Store store, const Lane& lane) {
    Leaf block = *part.alone;
    const std::byte* run = lane.target - row * block.unit_bytes;
    const auto into_line = static_cast<Index>(reinterpret_cast<std::uintptr_t>(run) % line_bytes);
    const Index shift = (line_bytes - into_line) % line_bytes / block.unit_bytes;
    const Index begin = row == 0 ? 0 : std::min(row + shift, part.rows);
    block.plane.inner = std::min(row + rows + shift, part.rows) - begin;
    if (block.plane.inner == 0) return;
    run_leaf(block, store, lane.source + (begin - row) * block.plane.source_stride,
             lane.target + (begin - row) * block.unit_bytes);
}

void MultiCopy::push(const std::byte* tile, std::span<std::byte* const> others, Store store) {
    walk([&](const Part& part, const Cursor& cursor, const Block& block) {
        move(part, cursor, block, store, [&](std::size_t memory, Index in_tile, Index in_other) {
            std::byte* other = others[memory];
            return std::pair(tile + in_tile, other == nullptr ? nullptr : other + in_other);
        });
    });
}

void MultiCopy::pull(std::byte* tile, std::span<const std::byte* const> others, Store store) {
    walk([&](const Part& part, const Cursor& cursor, const Block& block) {
        move(part, cursor, block, store, [&](std::size_t memory, Index in_tile, Index in_other) {
            const std::byte* other = others[memory];
            return std::pair(other == nullptr ? nullptr : other + in_other, tile + in_tile);
        });
    });
}

}  // namespace reshard
