// A baseline that programs write by hand to add up summands: one call of MPI's.
#pragma once

#include <mpi.h>

#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// A backend that runs a plan of one all_reduce as one MPI_Allreduce, and one of one reduce_scatter in equal blocks as
/// one MPI_Reduce_scatter, over the types that MPI adds up itself. Blocks that do not lie one behind the other are
/// packed before the call, and a result that is not one run of bytes is copied after it. A run blocks in start: for
/// measurements between ranks that are all well. Errors: as mpi::make_backend; unsupported for any other plan.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_reductions_backend(MPI_Comm communicator);

}  // namespace reshard::mpi
