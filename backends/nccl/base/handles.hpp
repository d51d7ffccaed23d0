// CUDA's handles with owners, and the return codes of both libraries as errors.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <memory>

#include "reshard/backends/backend.hpp"

namespace reshard::nccl {

/// Code::backend with the call's name and the library's message, unless the code is success or ncclInProgress.
[[nodiscard]] Result<void> checked(cudaError_t code, std::string_view call);
[[nodiscard]] Result<void> checked(ncclResult_t code, std::string_view call);

/// Makes a device current, and restores the one that was current before.
class OnDevice : NonCopyable {
public:
    explicit OnDevice(int device);
    ~OnDevice();

private:
    int before_ = 0;
};

class Stream {
public:
    [[nodiscard]] static Result<Stream> make();  ///< not synchronised with the legacy default stream
    [[nodiscard]] cudaStream_t get() const { return stream_.get(); }

private:
    struct Destroy {
        void operator()(cudaStream_t stream) const;
    };
    std::unique_ptr<CUstream_st, Destroy> stream_;
};

class Event {
public:
    [[nodiscard]] static Result<Event> make(bool timed);
    [[nodiscard]] cudaEvent_t get() const { return event_.get(); }

private:
    struct Destroy {
        void operator()(cudaEvent_t event) const;
    };
    std::unique_ptr<CUevent_st, Destroy> event_;
};

/// Device memory in the order of a stream. Allocating and freeing it wait for nothing else on the device: a kernel
/// there may belong to another rank, and may wait for this one.
class StreamMemory {
public:
    StreamMemory() = default;
    [[nodiscard]] static Result<StreamMemory> make(Index bytes, cudaStream_t stream);
    ~StreamMemory();
    StreamMemory(StreamMemory&& other) noexcept;
    StreamMemory& operator=(StreamMemory&& other) noexcept;
    [[nodiscard]] void* get() const { return start_; }

private:
    void* start_ = nullptr;
    cudaStream_t stream_ = nullptr;
};

}  // namespace reshard::nccl
