/// \file
/// reshard for C on GPUs: ranks of an NCCL communicator, which is borrowed. Buffers lie on its device.
#ifndef RESHARD_C_NCCL_H
#define RESHARD_C_NCCL_H

#include <nccl.h>

#include "reshard/c.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Options of the backend. All but the stream are the same on all ranks.
typedef struct reshard_nccl_options {
    size_t size;                ///< sizeof(reshard_nccl_options)
    void* stream;               ///< a cudaStream_t that orders runs; NULL: one of the backend's own
    int64_t timeout_ms;         ///< a wait that takes longer fails instead of hanging
    int64_t staging_bytes_max;  ///< the most that a prepared list may take
    int64_t communicators_max;  ///< communicators of groups that are kept for later plans
    int32_t ordered_sums;       ///< 1: sums are added in the order of the summands
    int32_t share_resources;    ///< 1: the groups' communicators share NCCL's resources with the whole one
    int32_t windows;            ///< 1: staging is registered as a window, where NCCL has windows
    int32_t reserved;           ///< 0
} reshard_nccl_options;

/// The defaults; a NULL in place of options means the same.
#define RESHARD_NCCL_OPTIONS_INITIALIZER \
    { sizeof(reshard_nccl_options), NULL, 600000, 268435456, 16, 0, 0, 1, 0 }

/// Collective, with the communicator's device current. reshard_bound_start_on takes a cudaStream_t. Errors: backend
/// (CUDA or NCCL fails), unsupported (NCCL is older than at compile time), usage.
int reshard_nccl_backend(ncclComm_t communicator, const reshard_nccl_options* options, reshard_backend** backend,
                         reshard_error** error);
/// Collective: the same number of bytes on every rank, which peers may reach without a copy where NCCL has windows.
/// reshard_memory_allocate is not collective. Errors: usage (another backend, below 0), backend.
int reshard_nccl_allocate_window(reshard_backend* backend, int64_t bytes, reshard_memory** memory,
                                 reshard_error** error);

#ifdef __cplusplus
}
#endif

#endif
