// Device memory as a backend hands it out: freed with its handle, known to communicators where that makes it faster.
#pragma once

#include "backends/nccl/prepare/prepared.hpp"

namespace reshard::nccl {

class DeviceMemory final : public Memory {
public:
    /// Errors: mismatch (a negative number of bytes), backend.
    [[nodiscard]] static Result<std::unique_ptr<DeviceMemory>> make(const Base& base, Index bytes);
    ~DeviceMemory() override;

    std::span<std::byte> bytes() override;

    /// With this rank only; peers need not do the like.
    [[nodiscard]] Result<void> enter_registry(const std::shared_ptr<Communicator>& communicator);
    /// Collective over the communicator, with the same size on all its ranks.
    [[nodiscard]] Result<void> add_window(const std::shared_ptr<Communicator>& communicator,
                                          std::chrono::milliseconds timeout);

private:
    DeviceMemory(int device, Index bytes) : device_(device), bytes_(bytes) {}
    void leave_registry();

    int device_;
    Index bytes_;
    std::unique_ptr<Staging> memory_;
    std::shared_ptr<Communicator> communicator_;
    void* registered_ = nullptr;
};

}  // namespace reshard::nccl
