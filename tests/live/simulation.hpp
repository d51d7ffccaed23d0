// A deterministic simulation of sessions: the protocol's state machines, between processes, networks and gathers that
// fail as a seed says. Time is virtual, so a session with leases of seconds takes microseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "live/protocol/publisher_state.hpp"
#include "live/protocol/subscriber_state.hpp"

namespace reshard::live::test {

/// How often faults happen, out of 1000 chances each.
struct Faults {
    int lose = 0;     ///< a message is lost
    int repeat = 0;   ///< a message comes twice
    int delay = 0;    ///< a message is late by up to two leases
    int kill = 0;     ///< a process dies (for each millisecond of 250)
    int stall = 0;    ///< a process stops for up to three leases
    int cut = 0;      ///< a link between two processes is cut without a word
    int corrupt = 0;  ///< a copied cell is wrong
};

/// The events of a session, counted.
struct Tally {
    Index updates = 0;       ///< that returned a new version
    Index nothing = 0;       ///< that returned no newer version
    Index errors = 0;        ///< that failed
    Index doubts = 0;        ///< joins of a rank in doubt
    Index gone = 0;          ///< reads of a version that was gone
    Index lapsed = 0;        ///< versions dropped while a reader may still read
    Index corrupted = 0;     ///< cells that were made wrong
    Index kills = 0;         ///< processes that died
    Index committed = 0;     ///< the last version of the publisher
    Index served = 0;        ///< the version that the first group serves at the end
    std::string fault = {};  ///< the broken invariant, with its time; empty: none
};

/// Runs one session of 250 to 400 ms with leases of 40 ms: 1 to 3 publisher's ranks, 1 to 2 subscribers of 1 to 3
/// ranks.
[[nodiscard]] Tally simulate(std::uint64_t seed, const Faults& faults);

}  // namespace reshard::live::test
