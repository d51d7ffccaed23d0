// What the schedules of all ranks carry, from sums over each dimension: exact where digits tell blocks apart, however
// uneven the tiles, in time that grows with devices and not with the transfers between them.
#pragma once

#include <optional>

#include "reshard/cost.hpp"

namespace reshard {

/// As carried, but for pairs, of which it says no less. Where several devices hold what others want, messages are
/// spread over the levels by the members of the move's group. Nullopt where blocks are not told by digits, where
/// replicas are paired (a permute), and where tables would be large. pre: the step is typed, both ends in one order.
[[nodiscard]] std::optional<Traffic> carried_by_digits(const Layout& before, const Step& step, const Move& move,
                                                       const Machine& machine, const NetworkDigits& network);

}  // namespace reshard
