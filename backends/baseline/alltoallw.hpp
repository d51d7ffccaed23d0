// A baseline that MPI programs write by hand: one MPI_Alltoallw over subarray datatypes.
#pragma once

#include <mpi.h>

#include <chrono>

#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// A backend that moves from the source tile to the target tile in one call of MPI, each rank's share by one datatype.
/// It has the same schedules as an exchange and none of the planning. Errors: as mpi::make_backend.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_alltoallw_backend(
    MPI_Comm communicator, std::chrono::milliseconds timeout = std::chrono::minutes(5));

}  // namespace reshard::mpi
