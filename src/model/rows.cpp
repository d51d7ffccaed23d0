#include "src/model/rows.hpp"

#include <algorithm>

#include "src/copy/copy.hpp"

namespace reshard {

namespace {

// Finds the places of boxes in a slot's tile, whose sides may have several intervals. The elements before each interval
// are counted once.
class Places {
public:
    Places(const Slot& slot, Index element_bytes) : slot_(slot), element_bytes_(element_bytes) {
        for (const Side& side : slot.tile) {
            std::vector<Index>& own = before_.emplace_back();
            Index indices = 0;
            for (const Interval& interval : side.intervals) {
                own.push_back(indices);
                indices += interval.size();
            }
        }
    }

    // pre: in each dimension the box lies within one interval.
    Region region_of(const Box& box) const {
        Index offset = slot_.storage.offset;
        Region region{0, element_bytes_, {}, {}};
        for (std::size_t k = 0; k < box.size(); ++k) {
            const std::vector<Interval>& intervals = slot_.tile[k].intervals;
            const auto next = std::ranges::upper_bound(intervals, box[k].begin, {}, &Interval::begin);
            const auto found = static_cast<std::size_t>(next - intervals.begin()) - 1;
            const Index own = before_[k][found] + box[k].begin - intervals[found].begin;
            offset += own * slot_.storage.strides[k];
            region.extents.push_back(box[k].size());
            region.strides_bytes.push_back(slot_.storage.strides[k] * element_bytes_);
        }
        region.offset_bytes = offset * element_bytes_;
        return region;
    }

private:
    const Slot& slot_;
    Index element_bytes_;
    std::vector<std::vector<Index>> before_;
};

// The longest loop becomes the runs of a row. If several are equally long, the innermost does. The other loops are
// taken index by index.
void append_box(Row row, LoopNest nest, std::vector<Row>& rows) {
    if (nest.empty) return;
    row.run_bytes = take_run(nest);
    row.source_offset = nest.source_offset;
    row.target_offset = nest.target_offset;
    std::vector<LoopNest::Loop>& loops = nest.loops;
    if (!loops.empty()) {
        const auto longest =
            std::max_element(loops.rbegin(), loops.rend(),
                             [](const LoopNest::Loop& a, const LoopNest::Loop& b) { return a.extent < b.extent; });
        row.runs = longest->extent;
        row.source_stride = longest->source_stride;
        row.target_stride = longest->target_stride;
        loops.erase(std::next(longest).base());
    }
    std::vector<Index> at(loops.size(), 0);
    while (true) {
        rows.push_back(row);
        std::size_t i = loops.size();
        for (; i > 0; --i) {
            const LoopNest::Loop& loop = loops[i - 1];
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

// Joins a run with the run that it continues.
bool join_runs(Row& row, const Row& next) {
    if (row.runs != 1 || next.runs != 1) return false;
    if (next.source_offset - row.source_offset != row.run_bytes) return false;
    if (next.target_offset - row.target_offset != row.run_bytes) return false;
    row.run_bytes += next.run_bytes;
    return true;
}

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

// Joins the rows from `first` on that continue each other.
template <class Join>
void join(std::vector<Row>& rows, std::size_t first, Join joins) {
    std::size_t last = first;
    for (std::size_t i = first + 1; i < rows.size(); ++i)
        if (!joins(rows[last], rows[i])) rows[++last] = rows[i];
    if (first < rows.size()) rows.resize(last + 1);
}

}  // namespace

void append_rows(Row row, std::span<const Box> boxes, const Slot& source, const Slot& target, Index element_bytes,
                 std::vector<Row>& rows) {
    const std::size_t first = rows.size();
    const Places from(source, element_bytes);
    const Places to(target, element_bytes);
    for (const Box& box : boxes) append_box(row, loop_nest(from.region_of(box), to.region_of(box)), rows);
    join(rows, first, join_runs);
    join(rows, first, join_strides);
}

}  // namespace reshard
