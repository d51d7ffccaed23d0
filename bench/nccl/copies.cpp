// Copies, casts and sums of the device beside its own copy: cudaMemcpyAsync, in turn, the median of the rounds. Rates
// count the bytes that are read and written. Needs a GPU; without one it says that nothing was measured and ends
// with 77.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
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
    std::function<void(CopySet&, const Case&)> add = [](CopySet& set, const Case& one) {
        set.copy(BufferId::source, one.source, BufferId::target, one.target);
    };
    Index bytes_an_element = 2 * source.element_bytes;  ///< read and written
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

Case cast(std::string name, DType from, DType to) {
    const Index elements = (Index{1} << 30) / size_of(from);
    return {std::move(name), region(size_of(from), {elements}, {1}), region(size_of(to), {elements}, {1}),
            [from, to](CopySet& set, const Case& one) {
                set.cast(from, to, BufferId::source, one.source, BufferId::target, one.target);
            },
            size_of(from) + size_of(to)};
}

Case sum(std::string name, DType dtype) {
    const Region all = region(size_of(dtype), {(Index{1} << 30) / size_of(dtype)}, {1});
    return {std::move(name), all, all,
            [dtype](CopySet& set, const Case& one) {
                set.combine(dtype, Combine::sum, BufferId::source, one.source, BufferId::target, one.target);
            },
            3 * size_of(dtype)};
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Index run : {64, 128, 256, 512, 4096, 65536}) all.push_back(runs(run));
    for (const Index element : {1, 2, 4, 8, 16}) all.push_back(transpose(element));
    all.push_back(cast("f32 to bf16", DType::f32, DType::bf16));
    all.push_back(cast("bf16 to f32", DType::bf16, DType::f32));
    all.push_back(cast("f64 to f32", DType::f64, DType::f32));
    for (const auto& [name, dtype] : {std::pair("f32", DType::f32), {"bf16", DType::bf16}, {"f64", DType::f64}})
        all.push_back(sum(fmt::format("sum of {}", name), dtype));
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
    const Index moved = bytes / one.source.element_bytes * one.bytes_an_element;
    std::byte* source = nullptr;
    std::byte* target = nullptr;
    void* table = nullptr;
    must(cudaMalloc(reinterpret_cast<void**>(&source), static_cast<std::size_t>(2 * bytes)), "cudaMalloc");
    must(cudaMalloc(reinterpret_cast<void**>(&target), static_cast<std::size_t>(std::max(bytes, bytes_of(one.target)))),
         "cudaMalloc");
    CopySet set;
    one.add(set, one);
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
    const double own_rate = 1e-9 * static_cast<double>(moved) / median(own);
    const double device_rate = 2e-9 * static_cast<double>(bytes) / median(devices);
    fmt::print("{:32} {:8.0f} GB/s {:8.0f} GB/s {:6.1f}%\n", one.name, own_rate, device_rate,
               100 * own_rate / device_rate);
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
