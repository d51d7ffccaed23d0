// The device memory of a backend. Its handle frees it. Communicators register it if that makes copies faster.
#pragma once

#include "backends/nccl/prepare/prepared.hpp"

namespace reshard::nccl {

/// Memory registered with a communicator, on this rank alone, so that it copies directly from and to it.
class RegisteredDeviceMemory final : public Registered {
public:
    /// Does nothing if NCCL has no registration. The memory must outlive it. Errors: backend.
    [[nodiscard]] static Result<std::unique_ptr<RegisteredDeviceMemory>> make(
        int device, const std::shared_ptr<Communicator>& communicator, std::span<std::byte> memory);
    ~RegisteredDeviceMemory() override { static_cast<void>(end()); }
    Result<void> end() override;

private:
    explicit RegisteredDeviceMemory(int device) : device_(device) {}
    int device_;
    std::shared_ptr<Communicator> communicator_;  // null: nothing is registered
    void* handle_ = nullptr;
};

class DeviceMemory final : public Memory {
public:
    /// Errors: mismatch (a negative number of bytes), backend.
    [[nodiscard]] static Result<std::unique_ptr<DeviceMemory>> make(const Base& base, Index bytes);
    ~DeviceMemory() override;

    std::span<std::byte> bytes() override;

    /// Registers on this rank only; peers need not register theirs.
    [[nodiscard]] Result<void> enter_registry(const std::shared_ptr<Communicator>& communicator);
    /// Collective over the communicator, with the same size on all its ranks.
    [[nodiscard]] Result<void> add_window(const std::shared_ptr<Communicator>& communicator,
                                          std::chrono::milliseconds timeout);

private:
    DeviceMemory(int device, Index bytes) : device_(device), bytes_(bytes) {}
    int device_;
    Index bytes_;
    std::unique_ptr<Staging> memory_;
    std::unique_ptr<RegisteredDeviceMemory> registered_;
};

}  // namespace reshard::nccl
