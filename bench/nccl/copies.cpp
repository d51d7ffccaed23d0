// Device copies beside the device's own: cudaMemcpyAsync of as many bytes, in turn, the median of the rounds. Needs a
// GPU; without one it says that nothing was measured and ends with 77.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backends/nccl/kernels/copy_set.hpp"

namespace reshard::nccl {
namespace {

constexpr int rounds = 21;

struct Case {
    std::string name;
    Region source;
    Region target;
};

Region region(Index element, std::vector<Index> extents, std::vector<Index> strides) {
    for (Index& stride : strides) stride *= element;
    return {0, element, std::move(extents), std::move(strides)};
}

// Runs of `run` bytes, every second one, packed: about 1 GiB.
Case runs(Index run) {
    const Index elements = run / 4;
    const Index rows = (Index{1} << 30) / run;
    return {fmt::format("rows of {} bytes, packed", run), region(4, {rows, elements}, {2 * elements, 1}),
            region(4, {rows, elements}, {elements, 1})};
}

Case transpose(Index element) {
    const Index side = Index{1} << (element >= 8 ? 13 : 14);
    const Index planes = std::max<Index>(1, (Index{1} << 30) / (side * side * element));
    return {fmt::format("transpose of {}-byte elements", element),
            region(element, {planes, side, side}, {side * side, side, 1}),
            region(element, {planes, side, side}, {side * side, 1, side})};
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Index run : {64, 128, 256, 512, 4096, 65536}) all.push_back(runs(run));
    for (const Index element : {1, 2, 4, 8, 16}) all.push_back(transpose(element));
    return all;
}

[[noreturn]] void stop(std::string_view call, std::string_view words) {
    fmt::print(stderr, "{}: {}\n", call, words);
    std::exit(3);
}
void must(cudaError_t code, std::string_view call) {
    if (code != cudaSuccess) stop(call, cudaGetErrorString(code));
}

template <class Body>
double seconds_of(cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end, const Body& body) {
    must(cudaEventRecord(begin, stream), "cudaEventRecord");
    body();
    must(cudaEventRecord(end, stream), "cudaEventRecord");
    must(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

void measure(const Case& one, cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end) {
    const Index bytes = bytes_of(one.source);
    std::byte* source = nullptr;
    std::byte* target = nullptr;
    void* table = nullptr;
    must(cudaMalloc(reinterpret_cast<void**>(&source), static_cast<std::size_t>(2 * bytes)), "cudaMalloc");
    must(cudaMalloc(reinterpret_cast<void**>(&target), static_cast<std::size_t>(bytes)), "cudaMalloc");
    CopySet set;
    set.copy(BufferId::source, one.source, BufferId::target, one.target);
    Placed placed;
    if (!set.place({source, target, nullptr, nullptr}, placed)) stop("place", one.name);
    const std::size_t table_bytes = placed.table.size() * sizeof(DeviceBox);
    must(cudaMalloc(&table, table_bytes), "cudaMalloc");
    must(cudaMemcpy(table, placed.table.data(), table_bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    std::vector<double> own;
    std::vector<double> devices;
    for (int round = 0; round < rounds; ++round) {
        devices.push_back(seconds_of(stream, begin, end, [&] {
            must(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice, stream),
                 "cudaMemcpyAsync");
        }));
        own.push_back(seconds_of(stream, begin, end, [&] {
            for (const Launch& launched : placed.launches) {
                const DeviceBoxes boxes{static_cast<const DeviceBox*>(table) + launched.first_box, launched.boxes};
                must(launch(launched.kernel, boxes, launched.blocks, stream), "launch");
            }
        }));
    }
    const auto rate = [&](const std::vector<double>& seconds) {
        return 2e-9 * static_cast<double>(bytes) / median(seconds);
    };
    fmt::print("{:32} {:8.0f} GB/s {:8.0f} GB/s {:6.1f}%\n", one.name, rate(own), rate(devices),
               100 * rate(own) / rate(devices));
    for (void* memory : {static_cast<void*>(source), static_cast<void*>(target), table})
        must(cudaFree(memory), "cudaFree");
}

}  // namespace
}  // namespace reshard::nccl

int main() {
    using namespace reshard::nccl;
    int devices = 0;
    const cudaError_t counted = cudaGetDeviceCount(&devices);
    if (counted != cudaSuccess || devices == 0) {
        fmt::print("unmeasured here: no GPU ({})\n", cudaGetErrorString(counted));
        return 77;
    }
    cudaStream_t stream = nullptr;
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreateWithFlags(&begin, cudaEventDefault), "cudaEventCreate");
    must(cudaEventCreateWithFlags(&end, cudaEventDefault), "cudaEventCreate");
    fmt::print("{:32} {:>13} {:>13} {:>7}\n", "bytes read and written", "this", "cudaMemcpy", "ratio");
    for (const Case& one : cases()) measure(one, stream, begin, end);
    return 0;
}
