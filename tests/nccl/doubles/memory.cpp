// The double's memory is the host's: poisoned, with an owner, a capacity and a guard behind each allocation.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "stream.hpp"

namespace gpu_double {
namespace {

constexpr unsigned char poison = 0xcb;
constexpr unsigned char guard = 0x6d;
constexpr std::size_t guard_bytes = 64;
constexpr std::size_t alignment = 256;

struct Allocation {
    std::size_t bytes;
    int device;
};
struct Device {
    std::size_t capacity = std::size_t{1} << 36;
    std::size_t live = 0;
    std::size_t peak = 0;
};
struct All {
    std::mutex mutex;
    std::map<const unsigned char*, Allocation> allocations;
    std::map<int, Device> devices;
};

All& all() {
    static All* only = new All;
    return *only;
}

std::atomic<int> complaints{0};

bool take(Device& device, std::size_t bytes) {
    if (bytes > device.capacity - std::min(device.capacity, device.live)) return false;
    device.live += bytes;
    device.peak = std::max(device.peak, device.live);
    return true;
}

bool on_device(const void* address, std::size_t bytes) { return gpu_double_owner(address, bytes) >= 0; }

// Checks which sides of a copy lie on a device.
void require_kind(const void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (bytes == 0 || kind == cudaMemcpyDefault) return;
    if (on_device(to, bytes) != to_device) gpu_double_complain("a copy's target is not where the copy says");
    if (on_device(from, bytes) != from_device) gpu_double_complain("a copy's source is not where the copy says");
}

cudaError_t release(unsigned char* at) {
    const std::lock_guard lock(all().mutex);
    const auto found = all().allocations.find(at);
    if (found == all().allocations.end()) {
        gpu_double_complain("memory was freed that was not allocated");
        return failed(cudaErrorInvalidValue);
    }
    const unsigned char* end = at + found->second.bytes;
    if (!std::all_of(end, end + guard_bytes, [](unsigned char byte) { return byte == guard; })) {
        gpu_double_complain("a write went past the end of its memory");
    }
    all().devices[found->second.device].live -= found->second.bytes;
    all().allocations.erase(found);
    std::free(at);
    return cudaSuccess;
}

}  // namespace
}  // namespace gpu_double

using namespace gpu_double;

extern "C" {

int gpu_double_owner(const void* address, std::size_t bytes) {
    const auto* at = static_cast<const unsigned char*>(address);
    const std::lock_guard lock(all().mutex);
    auto found = all().allocations.upper_bound(at);
    if (found == all().allocations.begin()) return -1;
    --found;
    const bool inside = at < found->first + found->second.bytes && at + bytes <= found->first + found->second.bytes;
    return inside ? found->second.device : -1;
}

bool gpu_double_reserve(int device, std::size_t bytes) {
    const std::lock_guard lock(all().mutex);
    return take(all().devices[device], bytes);
}
void gpu_double_release(int device, std::size_t bytes) {
    const std::lock_guard lock(all().mutex);
    all().devices[device].live -= bytes;
}
void gpu_double_set_capacity(int device, std::size_t bytes) {
    const std::lock_guard lock(all().mutex);
    all().devices[device].capacity = bytes;
    all().devices[device].peak = all().devices[device].live;
}
std::size_t gpu_double_live_bytes(int device) {
    const std::lock_guard lock(all().mutex);
    return all().devices[device].live;
}
std::size_t gpu_double_peak_bytes(int device) {
    const std::lock_guard lock(all().mutex);
    return all().devices[device].peak;
}

void gpu_double_complain(const char* what) {
    ++complaints;
    std::fprintf(stderr, "double of a GPU: %s\n", what);
}
int gpu_double_complaints() { return complaints; }

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
    const std::lock_guard lock(all().mutex);
    const Device& device = all().devices[current_device()];
    *total = device.capacity;
    *free_bytes = device.capacity - std::min(device.capacity, device.live);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void** made, std::size_t bytes) {
    note_blocking_call();
    *made = nullptr;
    if (capturing_here()) return failed(cudaErrorStreamCaptureUnsupported);
    if (bytes == 0) return cudaSuccess;
    const std::size_t rounded = (bytes + guard_bytes + alignment - 1) / alignment * alignment;
    const std::lock_guard lock(all().mutex);
    if (!take(all().devices[current_device()], bytes)) return failed(cudaErrorMemoryAllocation);
    auto* at = static_cast<unsigned char*>(std::aligned_alloc(alignment, rounded));
    if (at == nullptr) std::abort();
    std::memset(at, poison, bytes);
    std::memset(at + bytes, guard, rounded - bytes);
    all().allocations[at] = {bytes, current_device()};
    *made = at;
    return cudaSuccess;
}

// Like the real call, it waits for the device, so a hang of the device is a hang here too.
cudaError_t cudaFree(void* address) {
    note_blocking_call();
    if (address == nullptr) return cudaSuccess;
    if (capturing_here()) return failed(cudaErrorStreamCaptureUnsupported);
    auto* at = static_cast<unsigned char*>(address);
    const int device = gpu_double_owner(at, 1);
    for (const auto& stream : streams_of(device)) stream->wait();
    return release(at);
}

// Allocates at once and frees in the order of the stream, without waiting, like a pool.
cudaError_t cudaMallocAsync(void** made, std::size_t bytes, cudaStream_t stream) {
    static_cast<void>(stream_of(stream));
    return cudaMalloc(made, bytes);
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
    note_blocking_call();
    stream_of(stream)->push([address] { release(static_cast<unsigned char*>(address)); });
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void** made, std::size_t bytes) {
    note_blocking_call();
    *made = std::malloc(bytes);
    return *made != nullptr ? cudaSuccess : failed(cudaErrorMemoryAllocation);
}
cudaError_t cudaFreeHost(void* address) {
    note_blocking_call();
    std::free(address);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    require_kind(to, from, bytes, kind);
    stream_of(stream)->push([=] {
        if (bytes > 0) std::memcpy(to, from, bytes);
    });
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    note_blocking_call();
    if (capturing_here()) return failed(cudaErrorStreamCaptureImplicit);
    const cudaError_t issued = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    stream_of(nullptr)->wait();
    return issued;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
    if (bytes > 0 && !on_device(to, bytes)) gpu_double_complain("memory was set that is no device's");
    stream_of(stream)->push([=] { std::memset(to, value, bytes); });
    return cudaSuccess;
}
}
