// What programs under mpirun share: the clock, the median, and the end of a job that fails.
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

/// The value. An error is printed, and ends the job.
template <class Value>
Value require(Result<Value> result) {
    if (!result) {
        fmt::print(stderr, "{}\n", describe(result.error()));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

}  // namespace reshard::bench
