// Values in tiles, and schedules carried out on them with plain loops: the oracle's own distribution and delivery.
#pragma once

#include <cstdint>
#include <string>

#include "reshard/planner/schedule.hpp"
#include "reshard/planner/simulate.hpp"
#include "support/oracle.hpp"

namespace reshard::test {

using Values = std::vector<std::int64_t>;

/// One distinct value per element; row-major.
[[nodiscard]] Values make_array(const std::vector<Index>& shape);

/// What each device holds of `array`. With several summands all but the last are pseudo-random and the last makes up
/// the sum, or is the max, the min or the product, of which the others are on the right side or 1 and -1. Of an avg
/// they are shares, as in simulate.
[[nodiscard]] Tiles spread(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array);

/// Empty when replicas are equal and the summands of every element combine to `array`; else the first fault.
[[nodiscard]] std::string fault(const std::vector<Holding>& held, const std::vector<Index>& shape, const Values& array,
                                const Tiles& tiles);

/// What schedules did to the devices.
struct Delivery {
    Tiles tiles;
    std::vector<Index> received, sent, peers;  ///< per device: elements from others, to others, others it hears from
    std::string fault;                         ///< empty when every send met its receive and every element was written
};

/// All ranks' schedules of one step, carried out: k-th send to a peer meets the peer's k-th receive from that rank.
[[nodiscard]] Delivery deliver(const std::vector<Holding>& before, const std::vector<Holding>& after,
                               const std::vector<Schedule>& schedules, const Tiles& tiles);

[[nodiscard]] std::vector<Schedule> all_schedules(const Layout& before, const Step& step);

}  // namespace reshard::test
