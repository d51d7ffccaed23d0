// How the ranks of a communicator agree.
#pragma once

#include <vector>

#include "backends/mpi/base/polled.hpp"

namespace reshard::mpi {

/// Collective. Succeeds if all ranks succeeded and bring the same number of steps. A rank that failed gets its own
/// error back. The others get the code and the words of the first rank that failed.
[[nodiscard]] Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps);

/// The same, for a value. Returns it if all ranks succeeded.
template <class T>
[[nodiscard]] Result<T> all_succeeded(MPI_Comm communicator, Result<T> own, std::size_t steps) {
    RESHARD_CHECK(all_succeeded(communicator, own ? Result<void>() : tl::unexpected(own.error()), steps));
    return own;
}

/// Collective. Returns for each place the least vote of all ranks. All ranks bring the same number of places.
[[nodiscard]] Result<std::vector<char>> least(MPI_Comm communicator, std::vector<char> votes);

}  // namespace reshard::mpi
