// Recognizes schedules that are one call of a library of collectives. A rank gives and takes blocks of one shape: one
// for each member, or one for all.
#pragma once

#include <optional>

#include "reshard/planner/schedule.hpp"

namespace reshard {

struct NativeCollective {
    StepKind kind = StepKind::all_gather;  ///< or all_to_all, reduce_scatter, all_reduce
    std::vector<Index> members;            ///< in the order of the communicator
    std::vector<Box> gives;                ///< of the source tile, one per member or one
    std::vector<Box> takes;                ///< of the target tile, one per member or one
};

/// Returns null if the schedule is no such call on this rank. Members must still agree about this, because one rank
/// sees only its own side.
[[nodiscard]] std::optional<NativeCollective> native_collective(const Schedule& schedule);

}  // namespace reshard
