// A baseline that programs between meshes write by hand: Alpa's unit tasks. A unit task sends the overlap of one source
// tile and one target tile. It goes from a rank that holds it to all ranks that want it and do not have it.
#pragma once

#include <mpi.h>

#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// How a unit task travels: a message for each rank that wants it, posted all at once, or one MPI_Bcast, task after
/// task.
enum class UnitTasks { messages, broadcasts };

/// A backend that runs plans of one exchange as unit tasks, largest first, each from the holder whose node has been
/// given least (Zhuang et al., MLSys 2023, section 3.2, load balance by size); messages take the holders in turn. A run
/// blocks in start: for measurements between ranks that are all well. Errors: as mpi::make_backend.
[[nodiscard]] Result<std::unique_ptr<Backend>> make_unit_tasks_backend(MPI_Comm communicator, UnitTasks way);

}  // namespace reshard::mpi
