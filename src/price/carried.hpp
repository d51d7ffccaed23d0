// The traffic of all ranks' schedules, device by device. It is the price if no closed form holds.
#pragma once

#include <functional>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// As traffic_of, by looking at every transfer between two devices. pre: the step is typed.
[[nodiscard]] Traffic carried(const Layout& before, const Step& step, const Move& move, const Machine& machine,
                              const Network& network);

/// The elements that one device sends and receives over one level in one step.
struct DeviceLoad {
    Index device = 0;
    std::size_t level = 0;
    Index received = 0;
    Index sent = 0;
    Index messages = 0;  ///< peers that it receives from
    Index pair = 0;      ///< that go one way between two devices of the step, at most
};

/// visit(load) for each device and level of a step that carries something, by looking at every transfer. pre: the step
/// is typed.
void each_load(const Layout& before, const Step& step, const Move& move, const Machine& machine, const Network& network,
               const std::function<void(const DeviceLoad&)>& visit);

/// Elements that `device` receives from others in a step. pre: `move` is what the typing rule says of it.
[[nodiscard]] Index received_by(Index device, const Layout& before, const Step& step, const Move& move);

/// Elements that no device sends more of in a step. Holders of one tile share what is wanted of it evenly
/// (`move.sent`), but if they choose by a network, the nearest serve, and one of them may serve all.
[[nodiscard]] Index sent_at_most(const Layout& before, const Step& step, const Move& move, const Network& network);

/// By level, the elements that the busiest device sends or receives in all steps together. On a shared level it is the
/// busiest block. A device that is busy in one step may rest in another, so this may be less than the sum of each
/// step's maximum. pre: the steps are typed, `moves` are theirs.
[[nodiscard]] std::vector<Index> carried_in_all(const Plan& plan, std::span<const Move> moves, const Machine& machine);

/// The devices of a block that share one connection to a level; 1 where they do not.
[[nodiscard]] inline Index sharing_block(const Machine& machine, std::size_t level) {
    return level > 0 && machine.levels[level].shared ? machine.levels[level - 1].devices : 1;
}

}  // namespace reshard
