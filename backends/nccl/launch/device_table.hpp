// Boxes on the device, and the launches that read them.
#pragma once

#include "backends/nccl/base/base.hpp"
#include "backends/nccl/kernels/copy_set.hpp"

namespace reshard::nccl {

/// Copies the boxes of launches to the device, and waits for that. Errors: backend.
[[nodiscard]] Result<StreamMemory> upload(Base& base, const std::vector<DeviceBox>& table);

/// Enqueues launches whose boxes lie in the table. Allocates nothing. Errors: backend.
[[nodiscard]] Result<void> issue(std::span<const Launch> launches, const StreamMemory& table, cudaStream_t stream);

}  // namespace reshard::nccl
