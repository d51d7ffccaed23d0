// The published rules of other schedulers, as orders and times of our program. Their code is not copied.
#pragma once

#include "synth/program/times.hpp"

namespace reshard::program {

/// When an order ends, and the most bytes at the place that holds most.
struct Contest {
    Index end = 0;
    Index peak = 0;
};

/// Tasks as written. A move stands just behind its maker, and holds the compute of its sender, too. A move without a
/// maker stands before its first user.
[[nodiscard]] Contest blocking(const Activities& program);

/// Tasks as written, moves beside them (JaxPP, prefetchers). A move without a maker sets out when the task `ahead`
/// tasks before its first user does.
[[nodiscard]] Contest program_order(const Activities& program, int ahead);

/// Tasks as written for each place. Moves start as soon as both ends are free, in random orders; the best of 100 (the
/// pass of Alpa's authors).
[[nodiscard]] Contest random_moves(const Activities& program);

/// The rules of XLA's latency-hiding scheduler, from the end of the program to its beginning: a ready activity that
/// does not stall, then the greatest asynchronous depth, then one that unlocks a move, then less memory. One move in
/// flight.
[[nodiscard]] Contest latency_hiding(const Activities& program);

}  // namespace reshard::program
