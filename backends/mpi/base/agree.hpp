// How the ranks of a communicator agree.
#pragma once

#include <vector>

#include "backends/mpi/base/polled.hpp"

namespace reshard::mpi {

/// Collective. What this rank made, unless any rank failed or brings another number of steps: then an error on all. A
/// rank that made its own has the first one's that did not, with its code.
[[nodiscard]] Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps);

/// The same of what it is to return.
template <class T>
[[nodiscard]] Result<T> all_succeeded(MPI_Comm communicator, Result<T> own, std::size_t steps) {
    RESHARD_CHECK(all_succeeded(communicator, own ? Result<void>() : tl::unexpected(own.error()), steps));
    return own;
}

/// Collective. Place by place the least of what all ranks say; the same number of places on all ranks.
[[nodiscard]] Result<std::vector<char>> least(MPI_Comm communicator, std::vector<char> votes);

}  // namespace reshard::mpi
