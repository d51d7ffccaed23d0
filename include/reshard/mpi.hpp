// The MPI backend. The communicator is borrowed and duplicated once; MPI_Init is never called behind your back.
#pragma once

#include <mpi.h>

#include "reshard/backend.hpp"

namespace reshard::mpi {

/// Collective over `communicator`. Errors: backend when MPI is not initialized, already finalized, or fails.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_backend(MPI_Comm communicator);

/// The baseline of the benchmarks and of `reshard run`: one MPI_Alltoallw over subarray datatypes, from the source tile
/// to the target tile in row-major storage. It has the same schedules as an exchange and none of the planning.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_alltoallw_backend(MPI_Comm communicator);

}  // namespace reshard::mpi
