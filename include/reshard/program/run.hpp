// Runs a schedule on the ranks of a backend: device i is rank i.
#pragma once

#include <functional>
#include <map>

#include "reshard/execute.hpp"
#include "reshard/program/judge.hpp"

namespace reshard {

/// A part of a used array that has arrived. The task is called once for each part, in the order in which they arrive.
struct TaskPiece {
    std::size_t use = 0;           ///< of Task::uses
    std::size_t dim = 0;           ///< the dimension that is cut
    std::vector<Interval> part{};  ///< the part of this rank's tile along `dim`, in indices of the tile; ascending
    std::size_t place = 0;         ///< the number of calls before this one
    std::size_t count = 1;         ///< of calls
};

/// A task that runs on this rank. Tiles are dense and row-major.
struct TaskRun {
    const Task& task;                 ///< of the program
    std::vector<ConstElements> uses;  ///< this rank's tile of each of Task::uses, in the layout of the use
    /// This rank's tile of each of Task::makes, with unspecified contents. An array that takes over the memory of a
    /// donated one lies where the donated tile is, so read an element before you overwrite it.
    std::vector<Elements> makes;
    /// Moves go on and start only while the runtime has the thread. A long task calls this every half millisecond or
    /// so. It never blocks. Errors: the moves may fail; then the task returns the error.
    std::function<Result<void>()> progress;
    /// While a copy of it lives, the memory of all these tiles stays allocated, beyond the end of the task too.
    std::shared_ptr<const void> keeper;
    /// The part of a used array to compute with in this call. The other parts may be half written, except parts of
    /// earlier calls. nullopt: all arrays are there, and this is the only call.
    std::optional<TaskPiece> piece = std::nullopt;
};

/// Computes a task on this rank: reads `uses` and writes `makes`. An error ends the run on all ranks. A task whose use
/// has pieces_along is called once for each piece if the schedule has its move in pieces, else once.
using Compute = std::function<Result<void>(const TaskRun&)>;

/// A schedule that is prepared on one rank of a backend. It may run any number of times. It owns the tiles: it takes,
/// hands over and frees memory in the order of the schedule, so no rank is above its limit and no rank waits for ever,
/// however long the tasks take. A rank runs one task at a time, also if they have several engines. Backends: local and
/// MPI; any other if each move has all ranks. The backend must outlive it.
class ProgramRunner {
public:
    /// Collective over all ranks of the backend. `machine` is the one that the schedule was made for. Each move is
    /// prepared by the ranks that take part in it only. Equal moves share their preparation. A rank whose schedule
    /// failed passes the error, and the other ranks learn of it.
    /// Errors: mismatch if ranks bring different schedules, or the backend has too few ranks; unsupported (memory that
    /// a task takes over only in part, moves that were planned with donation, a backend without groups); as
    /// Executor::prepare.
    [[nodiscard]] static Result<ProgramRunner> prepare(const Result<Judged<ProgramSchedule>>& made,
                                                       const Machine& machine, Backend& backend);
    ProgramRunner(ProgramRunner&&) noexcept;             ///< no run may be in flight
    ProgramRunner& operator=(ProgramRunner&&) noexcept;  ///< the same
    ~ProgramRunner();

    /// This rank's tile of an array that is there from the beginning, or that is kept. Its bytes are empty if this rank
    /// has no tile. Write the arrays that are there from the beginning before each start; the first call after they
    /// were freed allocates them. Errors: usage (no array of that name, or one that is not held between runs, or one
    /// that passes the limit beside the kept arrays of the last run: call free_kept first); backend.
    [[nodiscard]] Result<Elements> tile(std::string_view array);
    /// Frees this rank's tiles that the last run has made and kept. The next start does the same. Nothing happens while
    /// a run is in flight.
    void free_kept();

    /// Begins a run on this rank. Every rank begins it. Ticket::test advances it and calls tasks, and never blocks
    /// except in a task. So one thread can run all ranks of a local world. Errors: usage if a run is in flight, or if
    /// an array that is there from the beginning has no tile; backend after a failed run. The ticket returns the error
    /// of the task or the move that failed first on this rank; on other ranks the error names a rank that failed and
    /// has its words.
    [[nodiscard]] Result<std::unique_ptr<Ticket>> start(Compute compute);
    /// Begins a run and waits for its end.
    [[nodiscard]] Result<void> run(const Compute& compute);

    /// The program with the times of the last run: a task has the longest time of its ranks, and a move the shortest,
    /// since ranks may wait in a move for each other. The same on all ranks. Errors: usage before a run has ended well.
    [[nodiscard]] Result<Program> measured() const;
    /// The most bytes of tiles, scratch and workspace that this rank has held, as the judge counts them.
    [[nodiscard]] Index most_bytes() const;

    struct State;  ///< private to the runner

private:
    explicit ProgramRunner(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace reshard
