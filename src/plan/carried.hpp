// What the schedules of all ranks carry, device by device: the price where no closed form holds.
#pragma once

#include "reshard/cost.hpp"

namespace reshard {

/// As traffic_of, by looking at every transfer between two devices. pre: the step is typed.
[[nodiscard]] Traffic carried(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                              const Network& network);

/// The devices of a block that share one connection to a level; 1 where they do not.
[[nodiscard]] inline Index sharing_block(const Machine& machine, std::size_t level) {
    return level > 0 && machine.levels[level].shared ? machine.levels[level - 1].devices : 1;
}

}  // namespace reshard
