#include "reshard/backends/mpi.hpp"

#include "bindings/c/answer.hpp"
#include "reshard/c_mpi.h"

namespace reshard::c {
namespace {

Result<mpi::Options> mpi_options_of(const reshard_mpi_options* given) {
    RESHARD_TRY(const auto& asked,
                structure<reshard_mpi_options>(given, RESHARD_MPI_OPTIONS_INITIALIZER, "reshard_mpi_options"));
    if (asked.unregistered_buffers < 0 || asked.unregistered_buffers > RESHARD_MPI_BOUNCE_NONTEMPORAL) {
        return fail(Code::usage, "`unregistered_buffers` is " + std::to_string(asked.unregistered_buffers) +
                                     ", it is 0 to " + std::to_string(RESHARD_MPI_BOUNCE_NONTEMPORAL));
    }
    RESHARD_CHECK(need_count(asked.ranks_per_node, 0, "ranks_per_node"));
    RESHARD_CHECK(need_count(asked.bounce_bytes, 0, "bounce_bytes"));
    RESHARD_CHECK(need_count(asked.piece_bytes, 0, "piece_bytes"));
    RESHARD_CHECK(need_count(asked.staging_bytes, 0, "staging_bytes"));
    RESHARD_CHECK(need_count(asked.timeout_ms, 0, "timeout_ms"));
    RESHARD_CHECK(need_count(asked.register_after, mpi::when_repaid, "register_after"));
    mpi::Options options;
    options.shared_memory = asked.shared_memory != 0;
    options.ranks_per_node = asked.ranks_per_node;
    options.unregistered_buffers = static_cast<mpi::UnregisteredBuffers>(asked.unregistered_buffers);
    options.bounce_bytes = asked.bounce_bytes;
    options.piece_bytes = asked.piece_bytes;
    options.staging_bytes = asked.staging_bytes;
    options.timeout = std::chrono::milliseconds(asked.timeout_ms);
    options.register_after = asked.register_after;
    return options;
}

// MPI_Comm_f2c before MPI_Init would abort.
MPI_Comm from_fortran(MPI_Fint communicator) {
    int initialized = 0;
    int finalized = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    return initialized != 0 && finalized == 0 ? MPI_Comm_f2c(communicator) : MPI_COMM_NULL;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_mpi_backend(MPI_Comm communicator, const reshard_mpi_options* options, reshard_backend** backend,
                        reshard_error** error) {
    return make_backend(
        backend, error, [&] { return mpi_options_of(options); },
        [&](const Error& why) { mpi::refuse(communicator, why); },
        [&](const mpi::Options& asked) { return mpi::make_backend(communicator, asked); });
}

int reshard_mpi_backend_f(MPI_Fint communicator, const reshard_mpi_options* options, reshard_backend** backend,
                          reshard_error** error) {
    return reshard_mpi_backend(from_fortran(communicator), options, backend, error);
}

int reshard_mpi_redistribute(MPI_Comm communicator, const reshard_layout* source, const reshard_layout* target,
                             const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error) {
    return reshard_mpi_redistribute_with(communicator, source, target, nullptr, in, in_bytes, out, out_bytes, error);
}

int reshard_mpi_redistribute_with(MPI_Comm communicator, const reshard_layout* source, const reshard_layout* target,
                                  const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                                  int64_t out_bytes, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        RESHARD_CHECK(same_version());
        RESHARD_TRY(const auto& backend, mpi::backend_of(communicator));
        return move_tiles(*backend, source, target, options, in, in_bytes, out, out_bytes);
    });
}

int reshard_mpi_redistribute_f(MPI_Fint communicator, const reshard_layout* source, const reshard_layout* target,
                               const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error) {
    return reshard_mpi_redistribute(from_fortran(communicator), source, target, in, in_bytes, out, out_bytes, error);
}

int reshard_mpi_redistribute_with_f(MPI_Fint communicator, const reshard_layout* source, const reshard_layout* target,
                                    const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                                    int64_t out_bytes, reshard_error** error) {
    return reshard_mpi_redistribute_with(from_fortran(communicator), source, target, options, in, in_bytes, out,
                                         out_bytes, error);
}

int reshard_mpi_clear(MPI_Comm communicator, reshard_error** error) {
    return answer(error, [&]() -> Result<void> {
        mpi::clear(communicator);
        return {};
    });
}

int reshard_mpi_clear_f(MPI_Fint communicator, reshard_error** error) {
    return reshard_mpi_clear(from_fortran(communicator), error);
}

}  // extern "C"
