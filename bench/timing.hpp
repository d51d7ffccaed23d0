// Programs under mpirun share the clock, the median, and the end of a job that fails.
#pragma once

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>
#include <vector>

#include "reshard/reshard.hpp"

namespace reshard::bench {

/// Seconds.
inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The higher of the two in the middle. pre: there are some.
inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

inline int world_rank() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

inline int world_size() {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    return ranks;
}

/// The value. An error is printed, and ends the job.
template <class Value>
Value require(Result<Value> result) {
    if (!result) {
        fmt::print(stderr, "rank {}: {}\n", world_rank(), describe(result.error()));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

}  // namespace reshard::bench
