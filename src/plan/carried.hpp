// What the schedules of all ranks carry, device by device: the price where no closed form holds.
#pragma once

#include "reshard/cost.hpp"

namespace reshard {

/// As traffic_of, by looking at every transfer between two devices. pre: the step is typed.
[[nodiscard]] Traffic carried(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                              const Network& network);

/// By level, the elements that the busiest device sends or receives in all steps together; of a shared level, the
/// busiest block. Who is busy in one step may rest in another, so it may be less than the sum of what the busiest of
/// each step do. pre: the steps are typed, `moves` are theirs.
[[nodiscard]] std::vector<Index> carried_in_all(const Plan& plan, std::span<const Move> moves, const Machine& machine);

/// The devices of a block that share one connection to a level; 1 where they do not.
[[nodiscard]] inline Index sharing_block(const Machine& machine, std::size_t level) {
    return level > 0 && machine.levels[level].shared ? machine.levels[level - 1].devices : 1;
}

}  // namespace reshard
