#include "backends/mpi/base/agree.hpp"

#include <array>
#include <string_view>

#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

// Collective. The error of the rank that `speaks`, which has one.
Result<Error> told_by(Index speaks, MPI_Comm communicator, const Result<void>& own) {
    const int root = static_cast<int>(speaks);
    Error told;
    if (rank_of(communicator) == speaks) told = own.error();
    std::array<Index, 2> head = {static_cast<Index>(told.code), std::ssize(told.message)};
    RESHARD_CHECK(checked(MPI_Bcast(head.data(), 2, MPI_INT64_T, root, communicator), "MPI_Bcast"));
    told.code = static_cast<Code>(head[0]);
    told.message.resize(static_cast<std::size_t>(head[1]));
    const auto length = static_cast<int>(head[1]);
    RESHARD_CHECK(checked(MPI_Bcast(told.message.data(), length, MPI_CHAR, root, communicator), "MPI_Bcast"));
    return told;
}

}  // namespace

Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps) {
    const auto count = static_cast<Index>(steps);
    const Index all = size_of_communicator(communicator);
    const std::array<Index, 3> mine = {own ? all : rank_of(communicator), count, -count};
    std::array<Index, 3> least{};
    const int code = MPI_Allreduce(mine.data(), least.data(), 3, MPI_INT64_T, MPI_MIN, communicator);
    RESHARD_CHECK(checked(code, "MPI_Allreduce"));
    if (least[0] < all) {
        auto told = told_by(least[0], communicator, own);
        if (!own) return own;
        if (!told) return tl::unexpected(told.error());
        // The ranks of its node may have been told before.
        constexpr std::string_view elsewhere = "another rank could not prepare: ";
        if (!told->message.starts_with(elsewhere)) told->message.insert(0, elsewhere);
        return tl::unexpected(std::move(*told));
    }
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
