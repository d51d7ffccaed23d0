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
    RESHARD_TRY(
        const auto& head,
        broadcast(communicator, std::array<Index, 2>{static_cast<Index>(told.code), std::ssize(told.message)}, root));
    told.code = static_cast<Code>(head[0]);
    told.message.resize(static_cast<std::size_t>(head[1]));
    RESHARD_ASSIGN(
        told.message, polled("MPI_Ibcast", std::move(told.message), [&](std::string& text, MPI_Request* request) {
            return MPI_Ibcast(text.data(), static_cast<int>(text.size()), MPI_CHAR, root, communicator, request);
        }));
    return told;
}

}  // namespace

Result<void> all_succeeded(MPI_Comm communicator, const Result<void>& own, std::size_t steps) {
    const auto count = static_cast<Index>(steps);
    const Index all = size_of_communicator(communicator);
    const std::array<Index, 3> mine = {own ? all : rank_of(communicator), count, -count};
    const auto reached = reduced(communicator, mine, MPI_INT64_T, MPI_MIN);
    if (!reached) return own ? tl::unexpected(reached.error()) : own;
    const std::array<Index, 3>& least = *reached;
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
    return reduced(communicator, std::move(votes), MPI_SIGNED_CHAR, MPI_MIN);
}

}  // namespace reshard::mpi
