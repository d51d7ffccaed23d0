// A run of a contestant that returns from `start` when all is delivered.
#pragma once

#include "reshard/backends/run.hpp"

namespace reshard::mpi {

struct Done final : Ticket {
    Result<bool> test() override { return true; }
};

}  // namespace reshard::mpi
