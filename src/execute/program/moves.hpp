// The moves of a schedule on one rank, each prepared by the ranks that take part in it only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "reshard/execute.hpp"
#include "reshard/program/judge.hpp"

namespace reshard::program {

/// Tells the ranks of a task that an earlier task, on other devices, has ended: each sends one byte.
struct TaskSignal {
    std::size_t earlier = 0;                ///< of Program::tasks
    std::size_t later = 0;                  ///< of Program::tasks
    std::optional<Executor> executor = {};  ///< none: this rank is in neither
};

class ProgramMoves {
public:
    /// Collective. Errors: as ProgramRunner::prepare.
    [[nodiscard]] static Result<ProgramMoves> prepare(const Result<Judged<ProgramSchedule>>& made, Backend& backend);

    /// Equal moves have one executor. pre: this rank takes part in the move.
    [[nodiscard]] Executor& of(std::size_t move) { return *executors_[executor_of_[move]]; }
    [[nodiscard]] std::vector<TaskSignal>& signals() { return signals_; }
    /// All ranks meet there at the end. Each brings one number for each activity, and gets the largest.
    [[nodiscard]] Executor& last() { return *last_; }

    /// All ranks that wait for this one in any move, or at the end, are told why it goes on with none.
    void abandon(const Error& why);

private:
    std::vector<std::optional<Executor>> executors_;
    std::vector<std::size_t> executor_of_;  // each move
    std::vector<TaskSignal> signals_;
    std::optional<Executor> last_;
};

}  // namespace reshard::program
