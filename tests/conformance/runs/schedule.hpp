// A random schedule: executors in flight over some ranks, what each rank calls in which order, and what one rank does
// wrong. All of it follows from the seed, so that every rank draws the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "../workbench.hpp"

namespace reshard::runs {

/// What a rank calls of an executor.
enum class Call { prepare, bind, start, wait, drop };

/// How a rank gets to the end of a run.
enum class Finish { wait, poll, poll_all, drop_ticket };

/// What one rank does wrong.
enum class Fault {
    none,
    rejected_plan,      ///< prepares a plan that the judge rejects
    other_plan,         ///< prepares another plan than the others
    limit,              ///< prepares within a limit that no plan meets
    small_buffer,       ///< binds a buffer that is too small, and drops the executor
    kept_after_small,   ///< the same, and keeps it, but never starts it
    right_after_small,  ///< the same, and then binds the right one
    started_twice,      ///< starts a run that is in flight
    never_started,      ///< drops the executor instead of starting it
    dropped_in_flight,  ///< drops executor and ticket instead of waiting, and runs no more
    idle,               ///< keeps the executor and never starts it
    late,               ///< comes when the others' timeout is over
    leaves              ///< drops everything, the backend too, and calls no more
};
inline constexpr std::size_t fault_count = 13;
[[nodiscard]] std::string_view name(Fault fault);

/// True for what only a timeout can end: the others are not told.
[[nodiscard]] bool needs_timeout(Fault fault);
/// True for what the others are told of: all of them get an error when they prepare.
[[nodiscard]] bool breaks_prepare(Fault fault);
[[nodiscard]] bool binds_too_small(Fault fault);

struct Op {
    Call call = Call::prepare;
    std::size_t executor = 0;
    int run = 0;  ///< of bind, start and wait
    Finish finish = Finish::wait;
    friend bool operator==(const Op&, const Op&) = default;
};

/// What one executor is prepared for.
struct List {
    std::vector<conformance::Item> items;
    std::vector<std::vector<std::size_t>> buckets;
    bool donate = false;
    int runs = 1;
    bool rebinds = false;  ///< for each run
};

/// As in mpi::Options, which not every build has.
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
    std::vector<List> lists;           ///< one for each executor
    std::vector<std::vector<Op>> ops;  ///< by rank
    std::vector<bool> keeps_broken;    ///< by rank: an executor that failed lives on to its end; else it goes at once
    Fault fault = Fault::none;
    Index faulty_rank = 0;
    std::size_t faulty_executor = 0;
    int faulty_run = 0;
    std::size_t faulty_op = 0;  ///< before which one a rank is late, or leaves
    std::chrono::milliseconds late_by{0};
};

/// A number that follows from the schedule's and is another for each `salt`: what memory lies where, for example.
[[nodiscard]] std::uint64_t mixed(const Schedule& schedule, std::uint64_t salt);

[[nodiscard]] Index ranks_of(std::uint64_t seed);          ///< 2 to 8
[[nodiscard]] bool takes_seconds(std::uint64_t seed);      ///< so that such schedules may be slow side by side
[[nodiscard]] Schedule draw_schedule(std::uint64_t seed);  ///< the same on every rank
[[nodiscard]] std::vector<List> draw_lists(std::uint64_t seed, Index ranks);
/// Orders of calls in which no rank waits for what another starts only after waiting for it.
[[nodiscard]] std::vector<std::vector<Op>> draw_ops(std::uint64_t seed, Index ranks, const std::vector<List>& lists);
/// A list that the judge rejects, or one of another fingerprint.
[[nodiscard]] ListPlan rejected(ListPlan list);
[[nodiscard]] ListPlan another(const ListPlan& list, std::uint64_t seed, Index ranks);

[[nodiscard]] ListPlan list_plan(const List& list);
[[nodiscard]] std::string describe(const Schedule& schedule);
[[nodiscard]] std::string describe(const Op& op);

}  // namespace reshard::runs
