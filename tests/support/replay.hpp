// A plan carried out in every way there is, and everything it promises counted.
#pragma once

#include "reshard/check.hpp"
#include "support/movement.hpp"

namespace reshard::test {

/// Carries out one step from tiles of the oracle by its schedules and by `simulate`; empty when check_schedules accepts
/// them, both give right tiles, and no device receives, sends or hears more than `move` says (exactly `received` where
/// uniform), nor more than its stripe in an exchange.
[[nodiscard]] std::string replay_step(const Layout& before, const Step& step, const Move& move);

/// The same for all steps of a judged plan, with the totals of the verdict; and for the plan as a whole.
[[nodiscard]] std::string replay(const Plan& plan, const Verdict& verdict);

}  // namespace reshard::test
