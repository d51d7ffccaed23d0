// Plans and schedules in the notation of the checker that is extracted from proofs/ (its grammar: proofs/README.md).
// There a mesh is one list of digits of the device number and an atom is a position in it, so a plan can be written
// down when the digits of its layouts over one order of devices have a common refinement; axes and their names
// disappear. Between meshes each layout says which devices it is over.
#pragma once

#include "reshard/planner/schedule.hpp"

namespace reshard::notation {

/// The checker judges schedules on at most so many devices.
inline constexpr Index certified_ranks_max = 64;
/// It judges plans between meshes of at most so many devices each. It looks up the place of each device.
inline constexpr Index certified_between_max = 4096;

/// The plan with every layout in the source's element type and no cast. Its tiles hold the same elements of the array,
/// so it is typed and moves the same boxes.
[[nodiscard]] Plan without_casts(Plan plan);

/// The plan as one line, without the newline; with `elements_max` the checker keeps tiles within that many elements.
/// The plan need not be typed, nor atoms be used once: that is for the checker to say. Casts are left out.
/// Errors: mismatch (the layouts are of different arrays), layout or mesh (digits that no layout can have), unsupported
/// (digits without a common refinement, sizes beyond the checker's numbers, more than certified_between_max devices
/// between meshes), step (a cast that is not typed, or a second one).
[[nodiscard]] Result<std::string> certificate(const Plan& plan, std::optional<Index> elements_max = {});

/// The schedules of one step on all ranks as one line. Errors: as above, and unsupported beyond certified_ranks_max
/// devices; plan when there is not one schedule of this kind per device, in order.
[[nodiscard]] Result<std::string> certificate(const Layout& before, const Step& step,
                                              const std::vector<Schedule>& schedules);

}  // namespace reshard::notation
