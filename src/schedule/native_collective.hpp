// Which schedules are one call of a library of collectives, and what a rank gives and takes in it: blocks of one shape,
// one for each member, or one for all.
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

/// Null when the schedule is none on this rank. Whether it is one at all the members must agree.
[[nodiscard]] std::optional<NativeCollective> native_collective(const Schedule& schedule);

}  // namespace reshard
