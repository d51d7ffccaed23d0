#include "backends/nccl/base/handles.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/base/try.hpp"

namespace reshard::nccl {

Result<void> checked(cudaError_t code, std::string_view call) {
    if (code == cudaSuccess) return {};
    return fail(Code::backend, fmt::format("{}: {}", call, cudaGetErrorString(code)));
}

Result<void> checked(ncclResult_t code, std::string_view call) {
    if (code == ncclSuccess || code == ncclInProgress) return {};
    return fail(Code::backend, fmt::format("{}: {}", call, ncclGetErrorString(code)));
}

OnDevice::OnDevice(int device) {
    cudaGetDevice(&before_);
    if (before_ != device) cudaSetDevice(device);
}

OnDevice::~OnDevice() { cudaSetDevice(before_); }

Result<Stream> Stream::make() {
    Stream made;
    cudaStream_t stream = nullptr;
    const cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    RESHARD_CHECK(checked(code, "cudaStreamCreate"));
    made.stream_.reset(stream);
    return made;
}

void Stream::Destroy::operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }

Result<Event> Event::make(bool timed) {
    Event made;
    cudaEvent_t event = nullptr;
    const cudaError_t code = cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming);
    RESHARD_CHECK(checked(code, "cudaEventCreate"));
    made.event_.reset(event);
    return made;
}

void Event::Destroy::operator()(cudaEvent_t event) const { cudaEventDestroy(event); }

Result<StreamMemory> StreamMemory::make(Index bytes, cudaStream_t stream) {
    StreamMemory made;
    made.stream_ = stream;
    if (bytes == 0) return made;
    const cudaError_t code = cudaMallocAsync(&made.start_, static_cast<std::size_t>(bytes), stream);
    if (auto done = checked(code, "cudaMallocAsync"); !done) {
        made.start_ = nullptr;
        cudaGetLastError();
        return tl::unexpected(done.error());
    }
    return made;
}

StreamMemory::~StreamMemory() {
    if (start_ != nullptr) cudaFreeAsync(start_, stream_);
}

StreamMemory::StreamMemory(StreamMemory&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), stream_(other.stream_) {}

StreamMemory& StreamMemory::operator=(StreamMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(stream_, other.stream_);
    return *this;
}

}  // namespace reshard::nccl
