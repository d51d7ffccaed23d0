// Streams, events and graphs of the double of libcudart. A stream is a thread that runs its work in order.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu.hpp"

namespace gpu_double {

using Work = std::function<void()>;
class Stream;

/// Captured work in the order of issue, which is one of the orders that its dependencies allow.
struct Graph {
    std::vector<Work> work;
};

/// A capture in progress: its graph, and for each stream the amount captured and the part that the origin waits for.
struct Capture {
    Stream* origin = nullptr;
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    std::map<Stream*, std::size_t> captured;
    std::map<Stream*, std::size_t> joined;
};

class Stream {
public:
    explicit Stream(int device);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void push(Work work);
    void wait();
    [[nodiscard]] bool idle();
    [[nodiscard]] int device() const { return device_; }

    std::shared_ptr<Capture> capture;  ///< only the capturing thread uses it

private:
    void run();
    int device_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Work> work_;
    bool busy_ = false;
    bool ended_ = false;
    std::thread thread_;
};

struct Event {
    explicit Event(bool is_timed) : timed(is_timed) {}
    bool timed;
    std::mutex mutex;
    std::condition_variable changed;
    unsigned long recorded = 0;
    unsigned long reached = 0;
    std::chrono::steady_clock::time_point at;
    std::shared_ptr<Capture> capture;  ///< the capture that recorded it, if any
    Stream* stream = nullptr;
    std::size_t position = 0;  ///< position in the capture of that stream
};

/// The stream of a handle; for a null handle the device's default stream.
[[nodiscard]] std::shared_ptr<Stream> stream_of(cudaStream_t handle);
[[nodiscard]] std::shared_ptr<Stream> new_stream(int device);
[[nodiscard]] bool drop_stream(Stream* stream);
[[nodiscard]] std::vector<std::shared_ptr<Stream>> streams_of(int device);

[[nodiscard]] int current_device();
cudaError_t set_current_device(int device);
cudaError_t failed(cudaError_t error);  ///< stores the error for cudaGetLastError
[[nodiscard]] bool capturing_here();    ///< true: this thread has a capture in progress
void note_capture(int change);
void note_blocking_call();
}  // namespace gpu_double
