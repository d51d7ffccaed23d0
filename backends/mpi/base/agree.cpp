#include "backends/mpi/base/agree.hpp"

#include <array>

#include "src/base/try.hpp"

namespace reshard::mpi {

Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps) {
    const auto count = static_cast<Index>(steps);
    const std::array<Index, 3> mine = {own ? 1 : 0, count, -count};
    std::array<Index, 3> least{};
    const int code = MPI_Allreduce(mine.data(), least.data(), 3, MPI_INT64_T, MPI_MIN, communicator);
    RESHARD_CHECK(checked(code, "MPI_Allreduce"));
    if (!own) return own;
    if (least[0] == 0) return fail(Code::backend, "another rank could not prepare");
    if (least[1] != -least[2]) return fail(Code::mismatch, "ranks bring different numbers of steps");
    return {};
}

Result<std::vector<char>> least(MPI_Comm communicator, std::vector<char> votes) {
    const int code = MPI_Allreduce(MPI_IN_PLACE, votes.data(), static_cast<int>(votes.size()), MPI_SIGNED_CHAR, MPI_MIN,
                                   communicator);
    RESHARD_CHECK(checked(code, "MPI_Allreduce"));
    return votes;
}

}  // namespace reshard::mpi
