// The oracle distributes values into tiles and carries out schedules on them, with plain loops.
#pragma once

#include <cstdint>
#include <string>

#include "reshard/planner/schedule.hpp"
#include "reshard/planner/simulate.hpp"
#include "support/oracle.hpp"

namespace reshard::test {

using Values = std::vector<std::int64_t>;

/// An array with one distinct value per element, row-major.
[[nodiscard]] Values make_array(const std::vector<Index>& shape);

/// The values that each device holds of `array`. All summands of a sum except the last are pseudo-random; the last
/// completes the sum. For max and min one summand is the value, and the others are on the right side of it. For prod
/// the last is the value up to sign, and the others are 1 or -1. For an avg they are shares, as in simulate.
[[nodiscard]] Tiles spread(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array);

/// Empty if replicas are equal and the summands of every element combine to `array`; otherwise the first fault.
[[nodiscard]] std::string fault(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array,
                                const Tiles& tiles);

/// The result of schedules on all devices.
struct Delivery {
    Tiles tiles;
    std::vector<Index> received, sent, peers;  ///< per device: elements from others, elements to others, senders
    std::string fault;                         ///< empty if every send met its receive and every element was written
};

/// Carries out all ranks' schedules of one step. The k-th send to a peer meets the peer's k-th receive from that rank.
[[nodiscard]] Delivery deliver(const std::vector<Holding>& before, const std::vector<Holding>& after,
                               const std::vector<Schedule>& schedules, const Tiles& tiles);

[[nodiscard]] std::vector<Schedule> all_schedules(const Layout& before, const Step& step);

}  // namespace reshard::test
