// The registry of all communicators of the process, and the checks that every call makes first.
#pragma once

#include <utility>

#include "clique.hpp"

namespace nccl_double {

inline constexpr std::size_t peer_bytes = 1 << 12;  ///< memory of a communicator for each connected peer

void count_call(const char* name);

/// Prints the mistake and returns the error. Within a group the whole group fails.
ncclResult_t refused(ncclResult_t error, const char* what);
[[nodiscard]] ncclResult_t take_group_error();
void begin_group();
/// Ends a group. Returns the number of groups still open; -1 if no group was open.
int end_group();
[[nodiscard]] bool in_group();

[[nodiscard]] std::shared_ptr<ncclComm> find(ncclComm_t handle);
[[nodiscard]] bool reserve(ncclComm& own, std::size_t bytes);

/// Makes a communicator for one rank. Null if the device has no memory left.
[[nodiscard]] ncclComm_t make(const std::shared_ptr<Clique>& clique, int rank, int device, bool blocking);
void forget(const std::shared_ptr<ncclComm>& own);

[[nodiscard]] bool is_ours(const ncclComm& own, const void* address, std::size_t bytes);
/// Success if this thread may now make a call on the communicator.
[[nodiscard]] ncclResult_t usable(const std::shared_ptr<ncclComm>& own);

}  // namespace nccl_double
