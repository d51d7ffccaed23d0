// A program as the search sees it: activities with times, resources that serve one of them at a time, and buffers.
#pragma once

#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard::program {

/// The numbers of all activities, each once. An order is the whole solution: times (synth/program/times.hpp) gives the
/// earliest start of each activity in it.
using Order = std::vector<int>;

/// A task or a move.
struct Activity {
    Index picoseconds = 0;
    std::vector<int> resources = {};  ///< held alone while it runs, each once
    std::vector<int> before = {};     ///< activities that must end before it starts, each once
    bool moves = false;               ///< a move of an array, not a task
    /// Whatever waits for it may start so long before its end: its user takes pieces as they arrive. At most the time
    /// of each activity that waits for it, and less than its own.
    Index early = 0;
};

/// Memory of one place. It is held from the start of its maker until all its users have ended.
struct Buffer {
    int place = 0;
    Index bytes = 0;
    int maker = -1;               ///< an activity; -1: held from the beginning
    std::vector<int> users = {};  ///< each once; without users it is held while its maker runs
    bool kept = false;            ///< never freed
};

/// Bytes that an activity takes at a place when it starts.
struct Opening {
    int place = 0;
    Index bytes = 0;
};

/// pre of all functions on it: `before` has no cycle, the sums of all times and of all bytes are below 2^58, and
/// complete has been called since the last change.
struct Activities {
    std::vector<Activity> all = {};
    std::vector<Buffer> buffers = {};
    int resources = 0;
    std::vector<Index> limits = {};  ///< of each place, in bytes; index_max: none
    Order written = {};              ///< the order of the program: each activity after its inputs

    // Derived by complete. Only places with a limit count.
    std::vector<std::vector<int>> after = {};      ///< the reverse of `before`
    std::vector<std::vector<Opening>> opens = {};  ///< of each activity, one entry for a place
    std::vector<std::vector<int>> releases = {};   ///< of each activity, the buffers that wait for its end
    std::vector<std::vector<int>> waits_for = {};  ///< the reverse of `releases`
    std::vector<Index> held_first = {};            ///< bytes that a place holds from the beginning
    bool limited = false;                          ///< some place has a limit

    [[nodiscard]] int count() const { return static_cast<int>(all.size()); }
    [[nodiscard]] int places() const { return static_cast<int>(limits.size()); }
};

/// Derives the members that follow from the others.
void complete(Activities& program);

/// The bytes that each place holds at most when the activities run one by one in this order: the least that the order
/// can do with.
[[nodiscard]] std::vector<Index> one_by_one(const Activities& program, const Order& order);

/// True when the order fits into the limits one by one. Then it never deadlocks, however long the activities take.
[[nodiscard]] bool fits(const Activities& program, const Order& order);

}  // namespace reshard::program
