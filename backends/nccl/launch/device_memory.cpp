#include "backends/nccl/launch/device_memory.hpp"

#include <fmt/format.h>

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
    leave_registry();
    memory_.reset();
}

std::span<std::byte> DeviceMemory::bytes() {
    return {memory_ ? memory_->start() : nullptr, static_cast<std::size_t>(bytes_)};
}

Result<void> DeviceMemory::enter_registry([[maybe_unused]] const std::shared_ptr<Communicator>& communicator) {
#if RESHARD_NCCL_HAS_MEMORY
    if (!memory_) return {};
    const ncclResult_t code =
        ncclCommRegister(communicator->get(), memory_->start(), static_cast<std::size_t>(bytes_), &registered_);
    RESHARD_CHECK(checked(code, "ncclCommRegister"));
    communicator_ = communicator;
#endif
    return {};
}

Result<void> DeviceMemory::add_window(const std::shared_ptr<Communicator>& communicator,
                                      std::chrono::milliseconds timeout) {
    return memory_ ? memory_->add_window(communicator, timeout) : Result<void>();
}

void DeviceMemory::leave_registry() {
#if RESHARD_NCCL_HAS_MEMORY
    if (!communicator_ || communicator_->aborted() || registered_ == nullptr) return;
    ncclCommDeregister(communicator_->get(), registered_);
#endif
}

}  // namespace reshard::nccl
