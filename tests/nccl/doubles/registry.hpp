// What all communicators of the process are known by, and what every call checks first.
#pragma once

#include <utility>

#include "clique.hpp"

namespace nccl_double {

inline constexpr std::size_t peer_bytes = 1 << 12;  ///< that a communicator takes for each peer it is connected to

void count_call(const char* name);

/// The error, after saying what was done wrong; within a group the group fails.
ncclResult_t refused(ncclResult_t error, const char* what);
[[nodiscard]] ncclResult_t take_group_error();
void begin_group();
/// The number of groups that are still open; -1 when there was none.
int end_group();
[[nodiscard]] bool in_group();

[[nodiscard]] std::shared_ptr<ncclComm> find(ncclComm_t handle);
[[nodiscard]] bool reserve(ncclComm& own, std::size_t bytes);

/// A communicator of its own for one rank. Null when the device has no memory left.
[[nodiscard]] ncclComm_t make(const std::shared_ptr<Clique>& clique, int rank, int device, bool blocking);
void forget(const std::shared_ptr<ncclComm>& own);

[[nodiscard]] bool is_ours(const ncclComm& own, const void* address, std::size_t bytes);
/// Whether a call may be made on it now, from here.
[[nodiscard]] ncclResult_t usable(const std::shared_ptr<ncclComm>& own);

}  // namespace nccl_double
