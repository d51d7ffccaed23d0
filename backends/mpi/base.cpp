#include "backends/mpi/base.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {

Result<void> Base::open(std::chrono::milliseconds timeout) {
    RESHARD_ASSIGN(roll_, Roll::make(communicator(), timeout));
    return {};
}

Result<Communicator> borrow(MPI_Comm communicator, const Result<void>& own, std::string_view call,
                            std::chrono::milliseconds timeout) {
    if (!usable()) return fail(Code::backend, "MPI is not running: call MPI_Init first, and not after MPI_Finalize");
    if (communicator == MPI_COMM_NULL) return fail(Code::backend, "there is no backend on MPI_COMM_NULL");
    RESHARD_CHECK(all_come(communicator, own, call, timeout));
    return duplicate(communicator);
}

}  // namespace reshard::mpi
