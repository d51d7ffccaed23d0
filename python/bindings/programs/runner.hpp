// Schedules that run, with tasks in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "python/bindings/errors.hpp"
#include "reshard/program/run.hpp"
#include "reshard/program/schedule.hpp"
#include "src/base/home.hpp"

namespace reshard::python {

/// A schedule, and the machine that it was made for.
struct Scheduled {
    ScheduleSynthesis made;
    Machine machine;
};

/// A schedule that is prepared on the ranks of this process: one under MPI, all of a local world.
class PythonRunner : NonCopyable {
public:
    /// Collective. `keeper` owns the backends and outlives the runner.
    PythonRunner(const Scheduled& scheduled, std::shared_ptr<void> keeper, const std::vector<Backend*>& ranks);
    ~PythonRunner();

    /// Runs once. `compute(rank, task, uses, makes, progress)` computes a task; uses and makes are lists of the name of
    /// an array, the layout and the tile as bytes. `fill(rank, array, layout)` returns the bytes of a tile that is
    /// there from the beginning. An exception of a task ends the run on all ranks, and is raised again here.
    void run(const nb::callable& fill, const nb::callable& compute);
    /// By name of a kept array: its layout, and a copy of its bytes on each rank.
    [[nodiscard]] nb::dict kept();
    [[nodiscard]] Program measured() const;
    [[nodiscard]] std::vector<Index> most_bytes() const;
    [[nodiscard]] const std::vector<Index>& ranks() const { return ranks_; }

private:
    Result<void> call(std::size_t place, const nb::callable& compute, const TaskRun& run);

    Program program_;
    std::shared_ptr<void> keeper_;
    std::vector<Index> ranks_;
    std::vector<ProgramRunner> runners_;
    std::exception_ptr raised_;  // by a task, the first one
    bool running_ = false;
    Home home_;
};

}  // namespace reshard::python
