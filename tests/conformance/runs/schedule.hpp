// A random schedule: executors in flight over some ranks, the calls of each rank in order, and the fault of one rank.
// Everything follows from the seed, so every rank draws the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../workbench.hpp"

namespace reshard::runs {

/// A call to an executor.
enum class Call { prepare, bind, start, wait, drop };

/// How a rank ends a run.
enum class Finish { wait, poll, poll_all, drop_ticket };

/// The fault of one rank.
enum class Fault {
    none,
    rejected_plan,      ///< prepares a plan that the judge rejects
    other_plan,         ///< prepares another plan than the others
    limit,              ///< prepares under a limit that no plan keeps
    small_buffer,       ///< binds a buffer that is too small, and drops the executor
    kept_after_small,   ///< the same, but keeps the executor and never starts it
    right_after_small,  ///< the same, and then binds the right buffer
    started_twice,      ///< starts a run that is in flight
    never_started,      ///< drops the executor instead of starting it
    dropped_in_flight,  ///< drops executor and ticket instead of waiting, and makes no more runs
    idle,               ///< keeps the executor and never starts it
    late,               ///< comes when the others' timeout is over
    leaves              ///< drops everything, the backend too, and makes no more calls
};
inline constexpr std::size_t fault_count = 13;
[[nodiscard]] std::string_view name(Fault fault);

/// True for faults that only a timeout ends, because no one tells the other ranks.
[[nodiscard]] bool needs_timeout(Fault fault);
/// True for faults that give all other ranks an error when they prepare.
[[nodiscard]] bool breaks_prepare(Fault fault);
[[nodiscard]] bool binds_too_small(Fault fault);

struct Op {
    Call call = Call::prepare;
    std::size_t executor = 0;
    int run = 0;  ///< for bind, start and wait
    Finish finish = Finish::wait;
    friend bool operator==(const Op&, const Op&) = default;
};

/// The list that one executor is prepared for.
struct List {
    std::vector<conformance::Item> items;
    std::vector<std::vector<std::size_t>> buckets;
    bool donate = false;
    int runs = 1;
    bool rebinds = false;  ///< binds again for each run
};

/// The same as in mpi::Options, which some builds do not have.
struct Transport {
    bool shared_memory = true;
    Index ranks_per_node = 0;
    Index bounce_bytes = 4096;
    Index piece_bytes = 256;
    int unregistered_buffers = 0;
    std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

struct Schedule {
    std::uint64_t seed = 0;
    Index ranks = 2;
    Transport transport;
    std::vector<List> lists;           ///< one per executor
    std::vector<std::vector<Op>> ops;  ///< by rank
    std::vector<bool> keeps_broken;    ///< by rank; false: a failed executor is dropped at once
    Fault fault = Fault::none;
    Index faulty_rank = 0;
    std::size_t faulty_executor = 0;
    int faulty_run = 0;
    std::size_t faulty_op = 0;  ///< the call before which a rank is late, or leaves
    std::chrono::milliseconds late_by{0};
};

/// A number from the schedule's seed, different for each `salt`. It chooses, for example, the memory of a tile.
[[nodiscard]] std::uint64_t mixed(const Schedule& schedule, std::uint64_t salt);

[[nodiscard]] Index ranks_of(std::uint64_t seed);          ///< 2 to 8
[[nodiscard]] bool takes_seconds(std::uint64_t seed);      ///< slow schedules run side by side
[[nodiscard]] Schedule draw_schedule(std::uint64_t seed);  ///< the same on every rank
[[nodiscard]] std::vector<List> draw_lists(std::uint64_t seed, Index ranks);
/// Orders of calls without a deadlock: no two ranks wait for each other.
[[nodiscard]] std::vector<std::vector<Op>> draw_ops(std::uint64_t seed, Index ranks, const std::vector<List>& lists);
/// A list that the judge rejects, or that has another fingerprint.
[[nodiscard]] ListPlan rejected(ListPlan list);
[[nodiscard]] ListPlan another(const ListPlan& list, std::uint64_t seed, Index ranks);

[[nodiscard]] ListPlan list_plan(const List& list);
[[nodiscard]] std::string describe(const Schedule& schedule);
[[nodiscard]] std::string describe(const Op& op);

}  // namespace reshard::runs
