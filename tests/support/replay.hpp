// Carries out a plan in every possible way, and counts everything that it promises.
#pragma once

#include "reshard/check.hpp"
#include "support/movement.hpp"

namespace reshard::test {

/// Carries out one step from tiles of the oracle, by its schedules and by `simulate`. Empty if check_schedules accepts
/// the schedules, both ways give the right tiles, and no device exceeds `move` (if it is uniform, each receives exactly
/// `received`). In an exchange no device may send more than its stripe.
[[nodiscard]] std::string replay_step(const Layout& before, const Step& step, const Move& move);

/// The same for all steps of a judged plan, with the totals of the verdict, and for the plan as a whole.
[[nodiscard]] std::string replay(const Plan& plan, const Verdict& verdict);

}  // namespace reshard::test
