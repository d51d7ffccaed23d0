#include "backends/nccl/launch/device_table.hpp"

#include "src/base/try.hpp"

namespace reshard::nccl {

Result<StreamMemory> upload(Base& base, const std::vector<DeviceBox>& table) {
    const auto bytes = static_cast<Index>(table.size() * sizeof(DeviceBox));
    if (bytes == 0) return StreamMemory();
    const cudaStream_t stream = base.stream();
    RESHARD_TRY(auto& held, StreamMemory::make(bytes, stream));
    const cudaError_t code =
        cudaMemcpyAsync(held.get(), table.data(), static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream);
    RESHARD_CHECK(checked(code, "cudaMemcpyAsync"));
    RESHARD_CHECK(base.await(stream));
    return std::move(held);
}

Result<void> issue(std::span<const Launch> launches, const StreamMemory& table, cudaStream_t stream) {
    for (const Launch& one : launches) {
        const DeviceBoxes boxes{static_cast<const DeviceBox*>(table.get()) + one.first_box, one.boxes};
        RESHARD_CHECK(checked(launch(one.kernel, boxes, one.blocks, stream), "a copy"));
    }
    return {};
}

}  // namespace reshard::nccl
