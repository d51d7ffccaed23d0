// Schedules a program: when each task runs and each move travels, under limits on memory.
#pragma once

#include "reshard/program/judge.hpp"
#include "reshard/synthesize.hpp"

namespace reshard {

/// Everything in the question except the program.
struct ScheduleOptions {
    /// Options of the plan of each move. Its machine prices the moves; its limits hold for each move by itself.
    Options moves = {};
    std::optional<Index> footprint_bytes_max = std::nullopt;  ///< that each device may hold; no limit when empty
    /// Rounds of local search; nullopt: 200,000 in programs of up to 20 activities, then in inverse proportion. The
    /// search begins anew, with as many rounds, each time that more moves come in pieces: at most eight times.
    std::optional<Index> rounds_max = std::nullopt;
    Index states_max = 300'000;  ///< states of the exact search of small programs
};

/// Why the search for a schedule ended.
enum class ScheduleStop {
    bound,      ///< the schedule ends at the lower bound, so none ends sooner
    exhausted,  ///< every order that could end sooner was visited, and no move may come in pieces
    budget,     ///< the rounds were used up; the best schedule so far is returned
};
[[nodiscard]] std::string_view name(ScheduleStop stop);  ///< bound, exhausted, budget

/// A schedule that the judge passed, and what the search knows about it.
struct ScheduleSynthesis : Judged<ProgramSchedule> {
    Index lower_bound = 0;  ///< picoseconds; no schedule within the limits ends sooner
    /// What gives the bound, for people: the longest path, a card, an engine, or the memory of a device.
    std::string binding = {};
    ScheduleStop stop = ScheduleStop::budget;  ///< why the search ended
    Index rounds = 0;                          ///< of local search, used
    Index states = 0;                          ///< of the exact search, used
    Index written_picoseconds = 0;             ///< the end of the program's own order; 0 if it does not fit
};

/// Returns the soonest schedule that a budget finds. Moves are inferred from the layouts, and equal moves share a plan.
/// If a use has pieces_along, its move comes in pieces if its user waits for it in the chain that ends last, and if the
/// schedule then ends sooner.
/// The same question has the same answer on every machine. Small programs are searched completely. Errors: as validate;
/// as synthesize, with the task and the array named; infeasible (what the orders that were tried need); unsupported
/// (more than 2^22 activities).
[[nodiscard]] Result<ScheduleSynthesis> schedule(const Program& program, const ScheduleOptions& options = {});

}  // namespace reshard
