// Requests that nobody waits for any more and that MPI cannot take back.
#pragma once

#include <memory>

#include "backends/mpi/base/handles.hpp"

namespace reshard::mpi {

/// Leaves a request to MPI, and keeps what it may read or write until it is done: for ever, where a rank never comes.
void abandon(MPI_Request request, std::shared_ptr<const void> kept);

}  // namespace reshard::mpi
