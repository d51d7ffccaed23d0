// What tests ask of the double of libnccl beyond NCCL's own calls. Found by name at run time, as those of gpu.hpp.
#pragma once

extern "C" {
/// After `operations` more operations of the device's ranks, one fails behind the back of the host: it never ends, and
/// its communicator reports an asynchronous error. Negative: none.
void nccl_double_fail(int device, int operations);

/// How long an operation waits for its peers before the double says that real NCCL would hang.
void nccl_double_set_timeout(int milliseconds);

/// Communicators of any rank that were made and not yet destroyed or aborted.
int nccl_double_communicators();

/// Calls by name, such as "ncclAlltoAll", since the program started.
int nccl_double_calls(const char* name);
}
