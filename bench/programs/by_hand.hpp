// A program as it is written by hand in MPI: each task, and then MPI_Ssend of its results.
#pragma once

#include <mpi.h>

#include "reshard/program/judge.hpp"

namespace reshard::program {

/// The part of one rank. Tasks run in the written order of their device. A sender waits until its receiver has all;
/// receives are posted before the run, into memory of their own. All meshes have one device.
class ByHand {
public:
    ByHand(const Judged<ProgramSchedule>& made, Index rank);
    /// Runs once, and returns how many received bytes are wrong.
    Index run();

private:
    struct Message {
        Index peer = 0;
        int tag = 0;
        std::string array;
        Layout layout;
        std::vector<std::byte> bytes;
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct Step {
        Index picoseconds = 0;
        std::vector<std::size_t> receives = {};  // that it waits for
        std::vector<std::size_t> sends = {};     // behind it
    };
    void post();
    void look();
    void wait(MPI_Request& request);

    Index rank_;
    std::vector<Step> steps_;
    std::vector<Message> receives_, sends_;
};

}  // namespace reshard::program
