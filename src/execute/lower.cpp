// Lowers a plan to the work of one rank: schedules, and the place of each tile.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/check.hpp"
#include "reshard/execute.hpp"
#include "src/base/try.hpp"
#include "src/copy/copy.hpp"
#include "src/execute/caller_array.hpp"
#include "src/execute/lower_judged.hpp"
#include "src/plan/buffer_assignment.hpp"

namespace reshard {
namespace {

// The array's two ends on this rank, in the caller's memory.
struct Ends {
    Slot source;
    Slot target;
    Index source_bytes = 0;
    Index target_bytes = 0;
};

// Strides from the innermost out: each must step over all that the inner dimensions cover, or two elements would share
// a place. Dense when it steps over nothing more.
struct Cover {
    bool distinct = true;
    bool dense = true;
    bool row_major = true;  // and dense
};

Cover cover_of(const Storage& storage, const Tile& tile) {
    std::vector<std::pair<Index, Index>> sides;  // stride, extent
    for (std::size_t k = 0; k < tile.size(); ++k) {
        if (tile[k].size() > 1) sides.emplace_back(storage.strides[k], tile[k].size());
    }
    Cover cover;
    cover.row_major = std::ranges::is_sorted(sides, std::ranges::greater());
    std::sort(sides.begin(), sides.end());
    Index covered = 1;
    for (const auto& [stride, extent] : sides) {
        cover.distinct = cover.distinct && stride >= covered;
        cover.dense = cover.dense && stride == covered;
        covered = stride * extent;  // fits: extent_of did
    }
    cover.row_major = cover.row_major && cover.dense;
    return cover;
}

Result<Ends> lower_ends(const Plan& plan, Index rank, const Storages& storages) {
    const Tile source = tile(plan.source, rank);
    const Tile target = tile(plan.target, rank);
    // A rank outside of the mesh has no tile, so a storage that its caller gives does not matter.
    const auto storage_of = [&](const Layout& layout, const Tile& held, const std::optional<Storage>& given) {
        return given && position_of(layout.mesh, rank) ? *given : row_major(held);
    };
    Ends ends{{BufferId::source, 0, source, storage_of(plan.source, source, storages.source)},
              {BufferId::target, 0, target, storage_of(plan.target, target, storages.target)},
              0,
              0};
    RESHARD_ASSIGN(ends.source_bytes, bytes_needed(ends.source.storage, source, size_of(plan.source.dtype), "source"));
    RESHARD_ASSIGN(ends.target_bytes, bytes_needed(ends.target.storage, target, size_of(plan.target.dtype), "target"));
    if (count(target) > 0 && !cover_of(ends.target.storage, target).distinct) {
        return fail(Code::mismatch, "the target storage puts two elements in one place");
    }
    return ends;
}

// Tiles between may lie in the memory of an end only where every byte there is the end's: what lies between the
// elements of a strided tile is not ours to write.
bool is_all_ours(const Slot& end) { return count(end.tile) == 0 || cover_of(end.storage, end.tile).dense; }

Index start_of(const Slot& end, Index element_bytes) { return end.storage.offset * element_bytes; }

// The slot of the same elements in the shape of `layout`. A dimension of a strided storage can be split, not merged.
Result<Slot> seen_as(const Slot& slot, const Layout& layout, Index rank) {
    Slot seen{slot.buffer, slot.offset_bytes, tile(layout, rank), {}};
    if (seen.tile == slot.tile) return slot;
    seen.storage = row_major(seen.tile);
    seen.storage.offset = slot.storage.offset;
    if (count(seen.tile) == 0 || cover_of(slot.storage, slot.tile).row_major) return seen;
    std::size_t whole = slot.tile.size();
    Index left = 1;    // indices of the dimension `whole` that no part has yet
    Index stride = 1;  // between two of them
    for (std::size_t part = seen.tile.size(); part-- > 0;) {
        const Index size = seen.tile[part].size();
        while (left == 1 && size > 1) {
            left = slot.tile[--whole].size();
            stride = slot.storage.strides[whole];
        }
        if (left % size != 0)
            return fail(Code::unsupported,
                        fmt::format("the plan sees the tile in another shape, whose dimension {} spans several "
                                    "dimensions of a strided storage; give the tile in row-major order",
                                    part));
        seen.storage.strides[part] = stride;
        left /= size;
        stride *= size;
    }
    return seen;
}

// A run of bytes in the source's buffer.
struct Run {
    Index offset_bytes = 0;
    Index bytes = 0;
};

// The longer one beside what the first step reads of a dense source. pre: all tiles of both have one shape.
Run unread_run(const Plan& plan, Index rank, const Slot& source) {
    const Index element_bytes = size_of(plan.source.dtype);
    const Region read = region_of(source, as_box(tile(first_read(plan), rank)), element_bytes);
    Index end = read.offset_bytes + element_bytes;
    for (std::size_t k = 0; k < read.extents.size(); ++k) end += (read.extents[k] - 1) * read.strides_bytes[k];
    const Index start = start_of(source, element_bytes);
    const Run before{start, read.offset_bytes - start};
    const Run after{end, start + count(source.tile) * element_bytes - end};
    return before.bytes >= after.bytes ? before : after;
}

// The places of intermediate tiles on this rank.
class Places {
public:
    Places(const Plan& plan, Index rank, const Ends& ends, bool donate)
        : rank_(rank),
          ends_(ends),
          source_start_(start_of(ends.source, size_of(plan.source.dtype))),
          target_start_(start_of(ends.target, size_of(plan.target.dtype))) {
        Capacities capacities = capacities_of(plan, donate);
        if (!is_all_ours(ends.target)) capacities.target = 0;
        if (!is_all_ours(ends.source)) capacities.source = capacities.unread = 0;
        if (capacities.unread > 0 && count(ends.source.tile) > 0) unread_ = unread_run(plan, rank, ends.source);
        if (unread_ && unread_->bytes < capacities.unread) capacities.unread = 0;  // it is not row-major
        tiles_ = assign_buffers(plan, capacities);
    }

    [[nodiscard]] const BufferAssignment& tiles() const { return tiles_; }

    /// The slot of the i-th tile that is written, which has this layout.
    [[nodiscard]] Slot slot(std::size_t i, const Layout& layout) const {
        const AssignedBuffer& at = tiles_.places[i];
        const Tile held = tile(layout, rank_);
        return {at.buffer, start(i, at.buffer) + at.offset_bytes, held, row_major(held)};
    }

private:
    [[nodiscard]] Index start(std::size_t i, BufferId place) const {
        if (place == BufferId::workspace) return 0;
        if (place == BufferId::source && i == 0) return unread_ ? unread_->offset_bytes : 0;
        return place == BufferId::source ? source_start_ : target_start_;
    }

    const Index rank_;
    const Ends& ends_;
    const Index source_start_;  // bytes from the start of the buffer
    const Index target_start_;
    std::optional<Run> unread_;
    BufferAssignment tiles_;
};

// A plan without a step that writes: source and target are the same tiles, and the rank copies its own.
RankStep copy_step(const Ends& ends, Index rank, DType dtype) {
    Schedule schedule{StepKind::exchange, rank, ends.source.tile, ends.target.tile, Combine::copy, {}, {}, {}, {}};
    for (Box& box : boxes_of(ends.target.tile)) schedule.receives.push_back({rank, std::move(box)});
    return {0, std::move(schedule), ends.source, ends.target, dtype, dtype};
}

}  // namespace

Result<RankPlan> lower(const Plan& plan, Index rank, const Storages& storages, const MemoryPolicy& memory) {
    if (rank < 0) return fail(Code::mismatch, fmt::format("there is no rank {}", rank));
    RESHARD_CHECK(check(plan));
    return lower_judged(plan, rank, storages, memory);
}

Result<RankPlan> lower_judged(const Plan& plan, Index rank, const Storages& storages, const MemoryPolicy& memory) {
    RESHARD_TRY(auto& ends, lower_ends(plan, rank, storages));
    RESHARD_ASSIGN(ends.source, seen_as(ends.source, behind_views(plan, 0), rank));
    const Places places(plan, rank, ends, memory.donate);
    const BufferAssignment& placement = places.tiles();
    const Layout& written = placement.written.empty() ? plan.target : plan.steps[placement.written.back()].layout;
    RESHARD_ASSIGN(ends.target, seen_as(ends.target, written, rank));
    if (placement.workspace_bytes == index_max)
        return fail(Code::overflow, "the workspace is larger than 64 bits count");

    RankPlan lowered{plan.source.dtype,         {}, ends.source_bytes, ends.target_bytes,
                     placement.workspace_bytes, 0,  plan.target.dtype};
    Slot from = ends.source;
    for (std::size_t i = 0; i < placement.written.size(); ++i) {
        const std::size_t number = placement.written[i];
        const Step& step = plan.steps[number];
        const bool last = i + 1 == placement.written.size();
        Slot to = last ? ends.target : places.slot(i, step.layout);
        const Layout& before = layout_before(plan, number);
        lowered.steps.push_back({number, schedule(before, step, rank, plan.network), from, to, read_dtype(plan, number),
                                 written_layout(plan, number).dtype});
        if (last) break;
        RESHARD_ASSIGN(from, seen_as(to, behind_views(plan, number + 1), rank));
    }
    if (lowered.steps.empty()) lowered.steps.push_back(copy_step(ends, rank, plan.source.dtype));
    return lowered;
}

}  // namespace reshard
