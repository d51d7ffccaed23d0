#include "stream.hpp"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

namespace gpu_double {
namespace {

// Never destroyed: streams may outlive main.
struct All {
    std::mutex mutex;
    std::vector<std::shared_ptr<Stream>> streams;
    std::map<int, std::shared_ptr<Stream>> own;  // the default stream of each device
};

All& all() {
    static All* only = new All;
    return *only;
}

thread_local int device_here = 0;
thread_local cudaError_t error_here = cudaSuccess;
thread_local int captures_here = 0;
thread_local bool watched_here = false;
thread_local int counted_here = 0;

int device_count() {
    static const int count =
        std::getenv("GPU_DOUBLE_DEVICES") != nullptr ? std::atoi(std::getenv("GPU_DOUBLE_DEVICES")) : 16;
    return count;
}

}  // namespace

Stream::Stream(int device) : device_(device), thread_([this] { run(); }) {}

Stream::~Stream() {
    {
        const std::lock_guard lock(mutex_);
        ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Stream::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [&] { return ended_ || !work_.empty(); });
        if (work_.empty()) return;
        const Work next = std::move(work_.front());
        work_.pop_front();
        busy_ = true;
        lock.unlock();
        if (gpu_double_draw(8) == 0) std::this_thread::sleep_for(std::chrono::microseconds(gpu_double_draw(100)));
        next();
        lock.lock();
        busy_ = false;
        changed_.notify_all();
    }
}

void Stream::push(Work work) {
    if (capture) {
        capture->graph->work.push_back(std::move(work));
        ++capture->captured[this];
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        work_.push_back(std::move(work));
    }
    changed_.notify_all();
}

void Stream::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return work_.empty() && !busy_; });
}

bool Stream::idle() {
    const std::lock_guard lock(mutex_);
    return work_.empty() && !busy_;
}

std::shared_ptr<Stream> new_stream(int device) {
    auto made = std::make_shared<Stream>(device);
    const std::lock_guard lock(all().mutex);
    all().streams.push_back(made);
    return made;
}

std::shared_ptr<Stream> stream_of(cudaStream_t handle) {
    if (handle == nullptr) {
        std::unique_lock lock(all().mutex);
        auto& own = all().own[device_here];
        if (own) return own;
        lock.unlock();
        auto made = new_stream(device_here);
        lock.lock();
        return all().own[device_here] = made;
    }
    const std::lock_guard lock(all().mutex);
    for (const auto& stream : all().streams) {
        if (stream.get() == reinterpret_cast<Stream*>(handle)) return stream;
    }
    gpu_double_complain("a stream was used that does not exist");
    std::abort();
}

bool drop_stream(Stream* stream) {
    std::shared_ptr<Stream> kept;  // its thread ends outside the lock
    const std::lock_guard lock(all().mutex);
    const auto found = std::ranges::find_if(all().streams, [&](const auto& one) { return one.get() == stream; });
    if (found == all().streams.end()) return false;
    kept = std::move(*found);
    all().streams.erase(found);
    return true;
}

std::vector<std::shared_ptr<Stream>> streams_of(int device) {
    const std::lock_guard lock(all().mutex);
    std::vector<std::shared_ptr<Stream>> found;
    std::ranges::copy_if(all().streams, std::back_inserter(found),
                         [&](const auto& stream) { return stream->device() == device; });
    return found;
}

int current_device() { return device_here; }

cudaError_t set_current_device(int device) {
    if (device < 0 || device >= device_count()) return failed(cudaErrorInvalidDevice);
    device_here = device;
    return cudaSuccess;
}

cudaError_t failed(cudaError_t error) {
    error_here = error;
    return error;
}

bool capturing_here() { return captures_here > 0; }
void note_capture(int change) { captures_here += change; }

void note_blocking_call() {
    if (watched_here) ++counted_here;
}

}  // namespace gpu_double

using namespace gpu_double;

extern "C" {

void gpu_double_enqueue(cudaStream_t stream, void (*fn)(void*), void* arg, void (*drop)(void*)) {
    const std::shared_ptr<void> kept(arg, drop);
    stream_of(stream)->push([fn, kept] { fn(kept.get()); });
}

void gpu_double_watch(bool on) {
    watched_here = on;
    if (on) counted_here = 0;
}
int gpu_double_counted() { return counted_here; }

unsigned gpu_double_draw(unsigned below) {
    static const unsigned seed = std::getenv("GPU_DOUBLE_SEED") != nullptr
                                     ? static_cast<unsigned>(std::atoi(std::getenv("GPU_DOUBLE_SEED")))
                                     : 1;
    thread_local std::mt19937 engine(seed +
                                     static_cast<unsigned>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    return below == 0 ? 0 : static_cast<unsigned>(engine() % below);
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = device_count();
    return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
    *device = device_here;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return set_current_device(device); }
cudaError_t cudaGetLastError() { return std::exchange(error_here, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return error_here; }
const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorStreamCaptureUnsupported:
            return "operation not permitted when stream is capturing";
        case cudaErrorStreamCaptureUnjoined:
            return "capture was not joined";
        default:
            return "an error of the double";
    }
}
}
