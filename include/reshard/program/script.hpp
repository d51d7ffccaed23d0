// What one device does in a schedule, for runtimes that start tasks and moves themselves.
#pragma once

#include "reshard/program/judge.hpp"

namespace reshard {

/// A task or a move that a device takes part in. Activities have the numbers of their positions in the order.
struct ScriptStep {
    std::size_t activity = 0;             ///< its position in ProgramSchedule::order
    std::vector<std::size_t> after = {};  ///< activities of any device that end before it starts, ascending
    /// A move in pieces that starts before it. The task uses each piece when it has arrived, and ends after the move.
    std::optional<std::size_t> beside = {};
    friend bool operator==(const ScriptStep&, const ScriptStep&) = default;
};

/// Memory of a device: its tile of an array, the scratch of a task or the workspace of a move.
struct ScriptMemory {
    std::string name;                           ///< of the array, the task or the move
    std::optional<Layout> layout = {};          ///< of the array; none for scratch and workspace
    Index bytes = 0;                            ///< of this device
    std::optional<std::size_t> taken_by{};      ///< an activity, when it starts; none: held from the beginning
    std::vector<std::size_t> freed_by = {};     ///< free when all these have ended; empty: not freed by an end
    std::optional<std::size_t> handed_to = {};  ///< a task whose arrays take it over when it starts
    friend bool operator==(const ScriptMemory&, const ScriptMemory&) = default;
};

/// The part of one device. A runtime starts the steps in their order. It starts a step when the activities of `after`
/// have ended, `beside` has started and its memory fits the limit. A move starts when all its devices start it. Then no
/// device waits for ever, and none is above its limit, however long the activities take (proofs/Program.v: never_stuck,
/// never_over).
struct DeviceScript {
    Index device = 0;                       ///< its number
    Index limit = index_max;                ///< bytes; index_max: none
    std::vector<ScriptStep> steps = {};     ///< in the order
    std::vector<ScriptMemory> memory = {};  ///< by the activity that takes it; first what is held from the beginning
    friend bool operator==(const DeviceScript&, const DeviceScript&) = default;
};

/// Returns the part of one device. `machine` is the one that the schedule was made for. Errors: usage (no mesh of the
/// program has the device).
[[nodiscard]] Result<DeviceScript> script_of(const Judged<ProgramSchedule>& made, const Machine& machine, Index device);

}  // namespace reshard
