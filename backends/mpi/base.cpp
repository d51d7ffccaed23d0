#include "backends/mpi/base.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace reshard::mpi {
namespace {

// Named from all ranks' fingerprints, which are fetched only once it is known that they differ.
Result<void> name_difference(MPI_Comm communicator, std::uint64_t own) {
    std::vector<std::uint64_t> all(static_cast<std::size_t>(size_of_communicator(communicator)));
    const int code = MPI_Allgather(&own, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, communicator);
    if (auto done = checked(code, "MPI_Allgather"); !done) return done;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] == 0) return fail(Code::mismatch, fmt::format("rank {} could not prepare its plan", rank));
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] != all[0])
            return fail(Code::mismatch, fmt::format("rank {} brings another plan than rank 0", rank));
    }
    return {};
}

}  // namespace

Result<void> Base::agree(std::uint64_t fingerprint) {
    const std::array<std::uint64_t, 2> own = {fingerprint, ~fingerprint};  // the least complement is of the greatest
    std::array<std::uint64_t, 2> least{};
    const int code = MPI_Allreduce(own.data(), least.data(), 2, MPI_UINT64_T, MPI_MIN, communicator());
    if (auto done = checked(code, "MPI_Allreduce"); !done) return done;
    if (least[0] == ~least[1] && least[0] != 0) return {};
    return name_difference(communicator(), fingerprint);
}

Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps) {
    const auto count = static_cast<Index>(steps);
    const std::array<Index, 3> mine = {own ? 1 : 0, count, -count};
    std::array<Index, 3> least{};
    const int code = MPI_Allreduce(mine.data(), least.data(), 3, MPI_INT64_T, MPI_MIN, communicator);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return done;
    if (!own) return own;
    if (least[0] == 0) return fail(Code::backend, "another rank could not prepare");
    if (least[1] != -least[2]) return fail(Code::mismatch, "ranks bring different numbers of steps");
    return {};
}

Result<std::vector<char>> least(MPI_Comm communicator, std::vector<char> votes) {
    const int code = MPI_Allreduce(MPI_IN_PLACE, votes.data(), static_cast<int>(votes.size()), MPI_SIGNED_CHAR, MPI_MIN,
                                   communicator);
    if (auto done = checked(code, "MPI_Allreduce"); !done) return tl::unexpected(done.error());
    return votes;
}

Result<Communicator> borrow(MPI_Comm communicator) {
    if (!usable()) return fail(Code::backend, "MPI is not running: call MPI_Init first, and not after MPI_Finalize");
    if (communicator == MPI_COMM_NULL) return fail(Code::backend, "there is no backend on MPI_COMM_NULL");
    return duplicate(communicator);
}

}  // namespace reshard::mpi
