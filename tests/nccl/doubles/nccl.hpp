// Calls of the double of libnccl beyond NCCL's own. Tests find them by name at run time, like the calls in gpu.hpp.
#pragma once

extern "C" {
/// After `operations` more operations of the device's ranks, one fails unseen by the host. It never ends, and its
/// communicator reports an asynchronous error. Negative: no operation fails.
void nccl_double_fail(int device, int operations);

/// Sets how long an operation waits for its peers before the double reports that real NCCL would hang.
void nccl_double_set_timeout(int milliseconds);

/// The number of communicators, of any rank, that are not yet destroyed or aborted.
int nccl_double_communicators();

/// The number of calls by name, such as "ncclAlltoAll", since the program started.
int nccl_double_calls(const char* name);
}
