// This process in MPI_COMM_WORLD.
#pragma once

#include <mpi.h>

namespace reshard {

inline int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

inline int world_size_of() {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

}  // namespace reshard
