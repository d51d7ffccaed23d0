// MPI's own statements about how its messages travel.
#pragma once

#include "backends/mpi/base/handles.hpp"

namespace reshard::mpi {

/// Collective. The most bytes of a message between hosts that MPI sends at once, least over all ranks; index_max where
/// it does not say. Open MPI's TCP asks the receiver of a longer one first, and queues that question, and its answer,
/// behind what is on its way already, so that two ranks with long messages for each other take turns.
[[nodiscard]] Result<Index> bytes_sent_at_once(MPI_Comm communicator);

}  // namespace reshard::mpi
