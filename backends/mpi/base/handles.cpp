#include "backends/mpi/base/handles.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "backends/mpi/base/polled.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

using Group = Owned<MPI_Group, MPI_Group_free>;

}  // namespace

bool usable() {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0;
}

std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
}

Result<void> checked(int code, std::string_view call) {
    if (code == MPI_SUCCESS) return {};
    return fail(Code::backend, fmt::format("{}: {}", call, text_of(code)));
}

Result<Communicator> returning_errors(MPI_Comm communicator) {
    Communicator owned(communicator);
    RESHARD_CHECK(checked(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"));
    return owned;
}

Result<Communicator> duplicate(MPI_Comm original) {
    RESHARD_TRY(const MPI_Comm made,
                polled("MPI_Comm_idup", MPI_Comm(MPI_COMM_NULL),
                       [&](MPI_Comm& copy, MPI_Request* request) { return MPI_Comm_idup(original, &copy, request); }));
    return returning_errors(made);
}

Result<Communicator> communicator_of(MPI_Comm parent, std::span<const Index> ranks) {
    const std::vector<int> members(ranks.begin(), ranks.end());
    MPI_Group all = MPI_GROUP_NULL;
    RESHARD_CHECK(checked(MPI_Comm_group(parent, &all), "MPI_Comm_group"));
    const Group all_owned(all);
    MPI_Group some = MPI_GROUP_NULL;
    const int included = MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some);
    RESHARD_CHECK(checked(included, "MPI_Group_incl"));
    const Group some_owned(some);
    MPI_Comm made = MPI_COMM_NULL;
    const int created = MPI_Comm_create_group(parent, some, 0, &made);
    RESHARD_CHECK(checked(created, "MPI_Comm_create_group"));
    return returning_errors(made);
}

Index rank_of(MPI_Comm communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
}

Index size_of_communicator(MPI_Comm communicator) {
    int size = 0;
    MPI_Comm_size(communicator, &size);
    return size;
}

}  // namespace reshard::mpi
