#include "src/model/rows.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "src/base/odometer.hpp"
#include "src/copy/copy.hpp"
#include "src/model/fold.hpp"

namespace reshard {

namespace {

using Loop = LoopNest::Loop;
using Dimension = std::vector<Progression>;

void append_loop(Region& source, Region& target, Index extent, Index source_stride, Index target_stride) {
    source.extents.push_back(extent);
    target.extents.push_back(extent);
    source.strides_bytes.push_back(source_stride);
    target.strides_bytes.push_back(target_stride);
}

// Adds the loops of one dimension to the regions of both tiles. Strides are in bytes.
void append_loops(Region& source, Region& target, const Progression& one, Index source_stride, Index target_stride) {
    source.offset_bytes += one.first.source * source_stride;
    target.offset_bytes += one.first.target * target_stride;
    for (const Repeat& repeat : {one.outer, one.inner})
        append_loop(source, target, repeat.count, repeat.source_step * source_stride,
                    repeat.target_step * target_stride);
    append_loop(source, target, one.first.length, source_stride, target_stride);
}

// The number of loops that a row has.
template <class AnyRow>
constexpr std::size_t depth = 1;
template <>
constexpr std::size_t depth<NestedRow> = NestedRow::depth;

template <class AnyRow>
constexpr Folding folding_of = depth<AnyRow> == 1 ? Folding::one_loop : Folding::two_loops;

// Takes the longest loops out of a nest. If several are equally long, the inner ones are taken. All keep their order.
std::vector<Loop> take_longest(std::vector<Loop>& loops, std::size_t wanted) {
    if (loops.size() <= wanted) return std::exchange(loops, {});
    std::vector<std::size_t> order(loops.size());
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return loops[i].extent; });
    std::vector<Loop> taken;
    std::vector<Loop> left;
    for (std::size_t i = 0; i < loops.size(); ++i) {
        const bool longest = std::find(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted), i) !=
                             order.begin() + static_cast<std::ptrdiff_t>(wanted);
        (longest ? taken : left).push_back(loops[i]);
    }
    loops = std::move(left);
    return taken;
}

void set_loops(Row& row, const std::vector<Loop>& loops) {
    if (loops.empty()) return;
    row.runs = loops.front().extent;
    row.source_stride = loops.front().source_stride;
    row.target_stride = loops.front().target_stride;
}

void set_loops(NestedRow& row, const std::vector<Loop>& loops) {
    const std::size_t first = NestedRow::depth - loops.size();
    for (std::size_t i = 0; i < loops.size(); ++i) {
        row.runs[first + i] = loops[i].extent;
        row.source_strides[first + i] = loops[i].source_stride;
        row.target_strides[first + i] = loops[i].target_stride;
    }
}

// A row has place for some loops. The other loops are taken index by index.
template <class AnyRow>
void append_nest(AnyRow row, LoopNest nest, std::vector<AnyRow>& rows) {
    if (nest.empty) return;
    row.run_bytes = take_run(nest);
    row.source_offset = nest.source_offset;
    row.target_offset = nest.target_offset;
    std::vector<Loop>& loops = nest.loops;
    set_loops(row, take_longest(loops, depth<AnyRow>));
    std::vector<Index> at(loops.size(), 0);
    while (true) {
        rows.push_back(row);
        std::size_t i = loops.size();
        for (; i > 0; --i) {
            const Loop& loop = loops[i - 1];
            row.source_offset += loop.source_stride;
            row.target_offset += loop.target_stride;
            if (++at[i - 1] < loop.extent) break;
            at[i - 1] = 0;
            row.source_offset -= loop.extent * loop.source_stride;
            row.target_offset -= loop.extent * loop.target_stride;
        }
        if (i == 0) return;
    }
}

// Appends the rows of each choice of one progression from each dimension.
template <class AnyRow>
void append_nests(const AnyRow& row, const std::vector<Dimension>& dims, const Storage& source, const Storage& target,
                  Index element_bytes, std::vector<AnyRow>& rows) {
    std::vector<Index> counts;
    for (const Dimension& dim : dims) counts.push_back(std::ssize(dim));
    (void)for_each_place(counts, [&](std::span<const Index> place) -> Result<void> {
        Region from{source.offset * element_bytes, element_bytes, {}, {}};
        Region to{target.offset * element_bytes, element_bytes, {}, {}};
        for (std::size_t k = 0; k < dims.size(); ++k)
            append_loops(from, to, dims[k][static_cast<std::size_t>(place[k])], source.strides[k] * element_bytes,
                         target.strides[k] * element_bytes);
        append_nest(row, loop_nest(from, to), rows);
        return {};
    });
}

template <class AnyRow>
void append_parts(const AnyRow& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                  Index element_bytes, std::vector<AnyRow>& rows) {
    std::vector<Dimension> dims;
    for (const Tile& part : parts) {
        if (count(part) == 0) continue;
        dims.clear();
        for (std::size_t k = 0; k < part.size(); ++k)
            dims.push_back(fold(part[k], source.tile[k], target.tile[k], folding_of<AnyRow>));
        append_nests(row, dims, source.storage, target.storage, element_bytes, rows);
    }
}

// Joins a run with the run that it continues.
template <class AnyRow>
bool continue_run(AnyRow& row, const AnyRow& next) {
    if (next.source_offset - row.source_offset != row.run_bytes) return false;
    if (next.target_offset - row.target_offset != row.run_bytes) return false;
    row.run_bytes += next.run_bytes;
    return true;
}

bool join_runs(Row& row, const Row& next) { return row.runs == 1 && next.runs == 1 && continue_run(row, next); }

// Runs of one length at one distance become one row.
bool join_strides(Row& row, const Row& next) {
    if (row.run_bytes != next.run_bytes) return false;
    const Index source_gap = next.source_offset - row.source_offset;
    const Index target_gap = next.target_offset - row.target_offset;
    if (source_gap <= 0 || target_gap <= 0) return false;
    const Row& strided = row.runs > 1 ? row : next;
    const Index source_stride = strided.runs > 1 ? strided.source_stride : source_gap;
    const Index target_stride = strided.runs > 1 ? strided.target_stride : target_gap;
    if (source_gap != row.runs * source_stride || target_gap != row.runs * target_stride) return false;
    if (next.runs > 1 && (next.source_stride != source_stride || next.target_stride != target_stride)) return false;
    row.runs += next.runs;
    row.source_stride = source_stride;
    row.target_stride = target_stride;
    return true;
}

// The outermost loop of a row that has more than one run; depth if none has.
std::size_t outermost(const NestedRow& row) {
    std::size_t loop = 0;
    while (loop < NestedRow::depth && row.runs[loop] == 1) ++loop;
    return loop;
}

bool same_loop(const NestedRow& a, const NestedRow& b, std::size_t loop) {
    return a.runs[loop] == b.runs[loop] && a.source_strides[loop] == b.source_strides[loop] &&
           a.target_strides[loop] == b.target_strides[loop];
}

bool same_loops_from(const NestedRow& a, const NestedRow& b, std::size_t first) {
    for (std::size_t loop = first; loop < NestedRow::depth; ++loop)
        if (!same_loop(a, b, loop)) return false;
    return true;
}

// Rows of equal runs become one: their outermost loops continue each other, or a new outermost loop holds both.
bool join_loops(NestedRow& row, const NestedRow& next) {
    const Index source_gap = next.source_offset - row.source_offset;
    const Index target_gap = next.target_offset - row.target_offset;
    if (row.run_bytes != next.run_bytes || source_gap <= 0 || target_gap <= 0) return false;
    const std::size_t loop = std::min(outermost(row), outermost(next));
    if (loop < NestedRow::depth && same_loops_from(row, next, loop + 1)) {
        const NestedRow& strided = row.runs[loop] > 1 ? row : next;
        const Index source_stride = strided.source_strides[loop];
        const Index target_stride = strided.target_strides[loop];
        const bool one_stride = next.runs[loop] == 1 || (next.source_strides[loop] == source_stride &&
                                                         next.target_strides[loop] == target_stride);
        if (one_stride && source_gap == row.runs[loop] * source_stride &&
            target_gap == row.runs[loop] * target_stride) {
            row.source_strides[loop] = source_stride;
            row.target_strides[loop] = target_stride;
            row.runs[loop] += next.runs[loop];
            return true;
        }
    }
    if (loop == 0 || !same_loops_from(row, next, loop)) return false;
    row.runs[loop - 1] = 2;
    row.source_strides[loop - 1] = source_gap;
    row.target_strides[loop - 1] = target_gap;
    return true;
}

bool join_nested_runs(NestedRow& row, const NestedRow& next) {
    if (outermost(row) < NestedRow::depth || outermost(next) < NestedRow::depth) return false;
    return continue_run(row, next);
}

// Joins the rows from `first` on that continue each other.
template <class AnyRow, class Join>
void join(std::vector<AnyRow>& rows, std::size_t first, Join joins) {
    std::size_t last = first;
    for (std::size_t i = first + 1; i < rows.size(); ++i)
        if (!joins(rows[last], rows[i])) rows[++last] = rows[i];
    if (first < rows.size()) rows.resize(last + 1);
}

void join_all(std::vector<Row>& rows, std::size_t first) {
    join(rows, first, join_runs);
    join(rows, first, join_strides);
}

void join_all(std::vector<NestedRow>& rows, std::size_t first) {
    join(rows, first, join_nested_runs);
    join(rows, first, join_loops);
}

Index runs_of(const Row& row) { return row.runs; }
Index runs_of(const NestedRow& row) {
    Index runs = 1;
    for (const Index count : row.runs) runs = saturating_multiply(runs, count);
    return runs;
}

void append_segments(const Row& row, std::vector<Segment>& segments) {
    for (Index i = 0; i < row.runs; ++i)
        segments.push_back(
            {row.source_offset + i * row.source_stride, row.target_offset + i * row.target_stride, row.run_bytes});
}

void append_segments(const NestedRow& row, std::vector<Segment>& segments) {
    (void)for_each_place(row.runs, [&](std::span<const Index> place) -> Result<void> {
        Segment run{row.source_offset, row.target_offset, row.run_bytes};
        for (std::size_t loop = 0; loop < NestedRow::depth; ++loop) {
            run.source += place[loop] * row.source_strides[loop];
            run.target += place[loop] * row.target_strides[loop];
        }
        segments.push_back(run);
        return {};
    });
}

// Folds the runs of a few rows as bytes, since runs of several dimensions may continue each other too: the end of a
// matrix's row and the start of the next. Only so many runs are spelled out.
constexpr Index spelled_out_max = 1024;

template <class AnyRow>
void fold_bytes(const AnyRow& row, std::vector<AnyRow>& rows, std::size_t first) {
    Index runs = 0;
    for (std::size_t i = first; i < rows.size(); ++i) runs = saturating_add(runs, runs_of(rows[i]));
    if (rows.size() < first + 2 || runs > spelled_out_max) return;
    std::vector<Segment> segments;
    for (std::size_t i = first; i < rows.size(); ++i) append_segments(rows[i], segments);
    std::ranges::sort(segments, {}, &Segment::target);
    const Dimension folded = fold(joined(segments), folding_of<AnyRow>);
    const Index count = depth<AnyRow> == 1 ? flat_rows(folded) : std::ssize(folded);
    if (count >= std::ssize(rows) - static_cast<Index>(first)) return;
    rows.resize(first);
    append_nests(row, {folded}, {0, {1}}, {0, {1}}, 1, rows);
}

template <class AnyRow>
void append_all(const AnyRow& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                Index element_bytes, std::vector<AnyRow>& rows) {
    const std::size_t first = rows.size();
    append_parts(row, parts, source, target, element_bytes, rows);
    join_all(rows, first);
    fold_bytes(row, rows, first);
}

}  // namespace

void append_rows(const Row& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                 Index element_bytes, std::vector<Row>& rows) {
    append_all(row, parts, source, target, element_bytes, rows);
}

void append_rows(const NestedRow& row, std::span<const Tile> parts, const Slot& source, const Slot& target,
                 Index element_bytes, std::vector<NestedRow>& rows) {
    append_all(row, parts, source, target, element_bytes, rows);
}

}  // namespace reshard
