// How the ranks of a communicator agree.
#pragma once

#include <vector>

#include "backends/mpi/base/handles.hpp"
#include "src/base/try.hpp"

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

/// Collective. Everyone's value, by rank; plain bytes.
template <class Value>
[[nodiscard]] Result<std::vector<Value>> gathered(MPI_Comm communicator, const Value& mine) {
    std::vector<Value> all(static_cast<std::size_t>(size_of_communicator(communicator)));
    const int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator);
    RESHARD_CHECK(checked(code, "MPI_Allgather"));
    return all;
}

/// Collective. Place by place the least of what all ranks say; the same number of places on all ranks.
[[nodiscard]] Result<std::vector<char>> least(MPI_Comm communicator, std::vector<char> votes);

}  // namespace reshard::mpi
