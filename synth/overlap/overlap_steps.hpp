// Pieces for the sake of the plan's own steps: while a piece is in one step, another is in the next.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// The plan in pieces whose steps overlap, where that ends sooner by run_picoseconds (by a twentieth at least) and
/// stays within the limits: as even pieces as can be, the fewest that are next to the best. nullopt where the backend
/// cannot do it (Capabilities::steps_overlap), the plan does not run as steps or has but one that moves, or every
/// layout on the way cuts some dimension anew.
[[nodiscard]] std::optional<Judged<Plan>> in_overlapped_pieces(const Judged<Plan>& plan, const Options& options);

}  // namespace reshard
