#include "backends/nccl/launch/device_memory.hpp"

#include <fmt/format.h>

#include <utility>

#include "backends/nccl/base/features.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::make(const Base& base, Index bytes) {
    if (bytes < 0) return fail(Code::mismatch, fmt::format("cannot allocate {} bytes", bytes));
    std::unique_ptr<DeviceMemory> made(new DeviceMemory(base.device(), bytes));
    if (bytes == 0) return made;
    auto staging = Staging::make(bytes);
    if (!staging) {
        return fail(staging.error().code, fmt::format("{} bytes of device memory: {}", bytes, staging.error().message));
    }
    made->memory_ = std::move(*staging);
    return made;
}

DeviceMemory::~DeviceMemory() {
    const OnDevice current(device_);
    registered_.reset();
    memory_.reset();
}

std::span<std::byte> DeviceMemory::bytes() {
    return {memory_ ? memory_->start() : nullptr, static_cast<std::size_t>(bytes_)};
}

Result<void> DeviceMemory::enter_registry(const std::shared_ptr<Communicator>& communicator) {
    if (!memory_) return {};
    RESHARD_ASSIGN(registered_, RegisteredDeviceMemory::make(device_, communicator, bytes()));
    return {};
}

Result<void> DeviceMemory::add_window(const std::shared_ptr<Communicator>& communicator,
                                      std::chrono::milliseconds timeout) {
    return memory_ ? memory_->add_window(communicator, timeout) : Result<void>();
}

Result<std::unique_ptr<RegisteredDeviceMemory>> RegisteredDeviceMemory::make(
    int device, [[maybe_unused]] const std::shared_ptr<Communicator>& communicator,
    [[maybe_unused]] std::span<std::byte> memory) {
    std::unique_ptr<RegisteredDeviceMemory> made(new RegisteredDeviceMemory(device));
#if RESHARD_NCCL_HAS_MEMORY
    if (memory.empty()) return made;
    const ncclResult_t code = ncclCommRegister(communicator->get(), memory.data(), memory.size(), &made->handle_);
    RESHARD_CHECK(checked(code, "ncclCommRegister"));
    made->communicator_ = communicator;
#endif
    return made;
}

// An aborted communicator has already dropped it.
Result<void> RegisteredDeviceMemory::end() {
    const std::shared_ptr<Communicator> communicator = std::exchange(communicator_, nullptr);
    if (!communicator || communicator->aborted() || handle_ == nullptr) return {};
#if RESHARD_NCCL_HAS_MEMORY
    const OnDevice current(device_);
    return checked(ncclCommDeregister(communicator->get(), handle_), "ncclCommDeregister");
#else
    return {};
#endif
}

}  // namespace reshard::nccl
