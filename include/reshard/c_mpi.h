/// \file
/// reshard for C under MPI: ranks of a communicator, which is borrowed. MPI_Init is never called behind your back.
/// Calls that end in _f take the communicator as Fortran has it.
#ifndef RESHARD_C_MPI_H
#define RESHARD_C_MPI_H

#include <mpi.h>

#include "reshard/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/// How data moves between ranks of a node that do not reach each other's buffers.
enum reshard_mpi_unregistered {
    RESHARD_MPI_BY_SIZE = 0,            ///< by the number of bytes; measured if it is small
    RESHARD_MPI_BOUNCE = 1,             ///< through a bounce buffer and the caches
    RESHARD_MPI_BOUNCE_NONTEMPORAL = 2  ///< the same with non-temporal stores
};

/// The same on all ranks. docs/running.md says what each is for.
typedef struct reshard_mpi_options {
    size_t size;                   ///< sizeof(reshard_mpi_options)
    int32_t shared_memory;         ///< 0: everything is messages
    int32_t unregistered_buffers;  ///< a ::reshard_mpi_unregistered
    int64_t ranks_per_node;        ///< so many consecutive ranks count as one node; 0: as MPI finds
    int64_t bounce_bytes;          ///< size of the bounce buffer of each rank
    int64_t piece_bytes;           ///< size of a message between nodes; 0: each transfer is one message
    int64_t staging_bytes;         ///< of each rank, for messages that are packed
    int64_t timeout_ms;            ///< how long a rank waits for a peer that does not come
    int64_t register_after;        ///< a buffer is registered after so many runs; 0: never; -1: once that repays
} reshard_mpi_options;

/// The defaults; a NULL in place of options means the same.
#define RESHARD_MPI_OPTIONS_INITIALIZER \
    { sizeof(reshard_mpi_options), 1, RESHARD_MPI_BY_SIZE, 0, 1048576, 262144, 33554432, 300000, 0 }

/// Collective. Released by all ranks, before MPI_Finalize. Errors: backend (MPI is not running, or fails), usage.
int reshard_mpi_backend(MPI_Comm communicator, const reshard_mpi_options* options, reshard_backend** backend,
                        reshard_error** error);
/// The same.
int reshard_mpi_backend_f(MPI_Fint communicator, const reshard_mpi_options* options, reshard_backend** backend,
                          reshard_error** error);

/// As reshard_redistribute, on a backend that the communicator keeps with all that is prepared, until MPI_Comm_free or
/// MPI_Finalize. Collective, in one order on all ranks.
int reshard_mpi_redistribute(MPI_Comm communicator, const reshard_layout* source, const reshard_layout* target,
                             const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error);
/// The same.
int reshard_mpi_redistribute_f(MPI_Fint communicator, const reshard_layout* source, const reshard_layout* target,
                               const void* in, int64_t in_bytes, void* out, int64_t out_bytes, reshard_error** error);
/// The same, and the array changes as the options say (reshard_redistribute_with).
int reshard_mpi_redistribute_with(MPI_Comm communicator, const reshard_layout* source, const reshard_layout* target,
                                  const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                                  int64_t out_bytes, reshard_error** error);
/// The same.
int reshard_mpi_redistribute_with_f(MPI_Fint communicator, const reshard_layout* source, const reshard_layout* target,
                                    const reshard_move_options* options, const void* in, int64_t in_bytes, void* out,
                                    int64_t out_bytes, reshard_error** error);
/// Collective: gives back what reshard_mpi_redistribute keeps on the communicator.
int reshard_mpi_clear(MPI_Comm communicator, reshard_error** error);
/// The same.
int reshard_mpi_clear_f(MPI_Fint communicator, reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
