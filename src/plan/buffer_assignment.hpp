// The buffer and the place of each tile between source and target. One rule, for the executor that follows it and the
// judge that states the footprint before anything runs.
#pragma once

#include "reshard/planner/part_of_copy.hpp"
#include "reshard/planner/storage.hpp"

namespace reshard {

/// Bytes for tiles between steps in the memory of the array's two ends, on every device that has the end.
struct Capacities {
    Index target = 0;
    Index source = 0;  ///< once the first step that reads it is done
    Index unread = 0;  ///< one run of bytes beside the slice that the first step reads: free from the start
    friend bool operator==(const Capacities&, const Capacities&) = default;
};

/// The capacities that hold on every device. The smallest tile gives them, since a trailing tile may be short or empty.
/// A source has capacity only if it is donated. `unread` is known if all its tiles have one shape and lie row-major.
[[nodiscard]] Capacities capacities_of(const Plan& plan, bool donate);

/// The type of the elements that a step reads. It is the type before the cast that is part of the step, if there is
/// one.
[[nodiscard]] DType read_dtype(const Plan& plan, std::size_t step);

/// The layout of the tile that a step writes. It is the layout behind the cast that is part of the step, if there is
/// one.
[[nodiscard]] const Layout& written_layout(const Plan& plan, std::size_t step);

/// The layout that the first step that writes reads: a slice before it is a view of the source.
[[nodiscard]] const Layout& first_read(const Plan& plan);

/// The layout before a step, or behind the views that begin there. A cast that is part of the copy before it may come
/// first.
[[nodiscard]] const Layout& behind_views(const Plan& plan, std::size_t step);

/// True if the last step, views aside, is no slice. Otherwise the run still copies the tile to the target's memory.
[[nodiscard]] bool writes(const Plan& plan);

/// The start of a tile: in an end at the start of that end's own tile, in `unread` at its start.
struct AssignedBuffer {
    BufferId buffer = BufferId::workspace;
    Index offset_bytes = 0;
    friend bool operator==(const AssignedBuffer&, const AssignedBuffer&) = default;
};

struct BufferAssignment {
    std::vector<std::size_t> written;    ///< the numbers (from 0) of the steps that write a tile, in order
    std::vector<AssignedBuffer> places;  ///< where each of them writes; the last one writes the target
    Index workspace_bytes = 0;           ///< the same on every rank with the same capacities; saturates
};

/// The rule, in bytes of full tiles. A slice that another step follows is a view of the tile it reads, and writes
/// nothing, unless that step is a view. A view is the tile before it, and never writes. A cast next to a copy is part
/// of that copy, and writes nothing either. The last tile that is written is the target. Each other tile lies in the
/// target's memory, in the source's or in the workspace. No step reads and writes the same memory, every tile fits, and
/// the workspace is as small as possible. The first tile may lie in the source only where the source is unread.
/// Consecutive tiles in the workspace alternate between its start and its end:
///     workspace = largest tile there, or largest two that follow each other,
///     footprint = source tile + target tile + workspace.
[[nodiscard]] BufferAssignment assign_buffers(const Plan& plan, const Capacities& capacities);

}  // namespace reshard
