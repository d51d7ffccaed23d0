// Launches of the double. The host runs each block and thread of a kernel in turn, with the same functions as the
// device. A kernel is found by its name.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "backends/nccl/kernels/kernels.hpp"
#include "stream.hpp"

namespace gpu_double {
namespace {

using namespace reshard;
using namespace reshard::nccl;

using Body = void (*)(const DeviceBox&, std::uint32_t);

// Runs every thread of a block up to the barrier, then every thread after it.
template <class Vector>
void copy_block(const DeviceBox& box, std::uint32_t block) {
    for (std::uint32_t thread = 0; thread < threads; ++thread) copy_rows<Vector>(box, block, thread);
}
template <class Vector>
void fill_block(const DeviceBox& box, std::uint32_t block) {
    for (std::uint32_t thread = 0; thread < threads; ++thread) fill_rows<Vector>(box, block, thread);
}
template <class Word, std::uint32_t Pack>
void turn_block(const DeviceBox& box, std::uint32_t block) {
    auto shared = std::make_unique<Tile<Word, Pack>>();
    const TilePlace place = tile_place(box, block);
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        read_tile<Word, Pack>(box, place, thread, *shared);
    }
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        write_tile<Word, Pack>(box, place, thread, *shared);
    }
}
template <class Element, class Vector>
void fold_block(const DeviceBox& box, std::uint32_t block) {
    for (std::uint32_t thread = 0; thread < threads; ++thread) {
        fold_rows<Element, Vector>(box, block, thread);
    }
}

template <class Element, std::uint32_t count>
void cast_block(const DeviceBox& box, std::uint32_t block) {
    for (std::uint32_t thread = 0; thread < threads; ++thread) cast_rows_to<Element, count>(box, block, thread);
}

struct Emulation {
    Body body;
    std::size_t width;           // bytes of an access; of a cast, of an access to the target
    bool reads;                  // false for fills
    std::size_t cast_count = 0;  // elements that a cast reads at once
};

const std::map<std::string, Emulation>& emulations() {
    static const std::map<std::string, Emulation> all = {
#define X(name, Vector)                                                   \
    {"reshard_copy_" #name, {copy_block<Vector>, alignof(Vector), true}}, \
        {"reshard_fill_" #name, {fill_block<Vector>, alignof(Vector), false}},
        RESHARD_ROW_KERNELS(X)
#undef X
#define X(name, Word, pack) {"reshard_turn_" #name, {turn_block<Word, pack>, alignof(Word), true}},
            RESHARD_TILE_KERNELS(X)
#undef X
#define X(name, Element, ...)                                                                                      \
    {"reshard_fold_" #name, {fold_block<Element, ElementVector<Element>>, alignof(ElementVector<Element>), true}}, \
        {"reshard_fold_" #name "_wide", {fold_block<Element, Word16>, alignof(Word16), true}},
                RESHARD_ELEMENTS(X)
#undef X
#define X(name, Element, ...)                                                    \
    {"reshard_cast_" #name, {cast_block<Element, 1>, sizeof(Element), true, 1}}, \
        {"reshard_cast_" #name "_wide",                                          \
         {cast_block<Element, cast_pack<Element>>, cast_pack<Element> * sizeof(Element), true, cast_pack<Element>}},
                    RESHARD_DTYPES(X, X)
#undef X
    };
    return all;
}

struct Known {
    std::mutex mutex;
    std::map<const void*, std::string> names;
    std::map<std::string, int> launches;
};
Known& known() {
    static Known* only = new Known;
    return *only;
}

struct Configuration {
    dim3 grid;
    dim3 block;
    std::size_t shared;
    cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

std::size_t bytes_of(ElementId element) {
    switch (element) {
#define X(name, Element, ...) \
    case ElementId::name:     \
        return sizeof(Element);
        RESHARD_DTYPES(X, X)
#undef X
    }
    return 0;
}

// Checks that a box lies in the device's memory, and that whole accesses are aligned. A real device would fault.
void require_reach(const DeviceBox& box, const Emulation& kernel, int number) {
    constexpr std::size_t alignment_max = 16;  // longer accesses are made of two
    const std::size_t read_bytes = kernel.cast_count == 0 ? kernel.width : kernel.cast_count * bytes_of(box.from);
    std::size_t source_end = read_bytes;
    std::size_t target_end = kernel.width;
    std::size_t source_bits = reinterpret_cast<std::uintptr_t>(box.source);
    std::size_t target_bits = reinterpret_cast<std::uintptr_t>(box.target);
    for (int k = 0; k < box.loop_count; ++k) {
        const DeviceLoop& loop = box.loops[k];
        source_end += (loop.extent.value - 1) * static_cast<std::size_t>(loop.source_stride);
        target_end += (loop.extent.value - 1) * static_cast<std::size_t>(loop.target_stride);
        source_bits |= static_cast<std::size_t>(loop.source_stride);
        target_bits |= static_cast<std::size_t>(loop.target_stride);
    }
    if (box.columns > 0) {
        source_end += (box.rows - 1) * static_cast<std::size_t>(box.row_stride);
        target_end += (box.columns - 1) * static_cast<std::size_t>(box.column_stride);
        source_bits |= static_cast<std::size_t>(box.row_stride);
        target_bits |= static_cast<std::size_t>(box.column_stride);
    }
    if ((kernel.reads && source_bits % std::min(read_bytes, alignment_max) != 0) ||
        target_bits % std::min(kernel.width, alignment_max) != 0)
        gpu_double_complain("a kernel's access is not aligned");
    if (gpu_double_owner(box.target, target_end) != number) {
        gpu_double_complain("a kernel writes outside of its device's memory");
        std::abort();
    }
    if (kernel.reads && gpu_double_owner(box.source, source_end) != number) {
        gpu_double_complain("a kernel reads outside of its device's memory");
        std::abort();
    }
}

void run_kernel(const Emulation& kernel, std::uint32_t blocks, const DeviceBoxes& boxes, int number) {
    if (gpu_double_owner(boxes.boxes, boxes.count * sizeof(DeviceBox)) != number) {
        gpu_double_complain("a kernel's boxes are not in its device's memory");
        std::abort();
    }
    for (std::uint32_t i = 0; i < boxes.count; ++i) require_reach(boxes.boxes[i], kernel, number);
    for (std::uint32_t block = 0; block < blocks; ++block) {
        const DeviceBox& box = box_of(boxes, block);
        kernel.body(box, static_cast<std::uint32_t>(block - box.first_block));
    }
}

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments, cudaStream_t handle) {
    std::string name;
    {
        const std::lock_guard lock(known().mutex);
        name = known().names[function];
        ++known().launches[name];
    }
    const auto found = emulations().find(name);
    if (found == emulations().end() || block.x != threads) {
        std::fprintf(stderr, "double of a GPU: the kernel '%s' is not known here\n", name.c_str());
        return failed(cudaErrorInvalidDeviceFunction);
    }
    const auto boxes = *static_cast<const DeviceBoxes*>(arguments[0]);
    const auto stream = stream_of(handle);
    const Emulation& kernel = found->second;
    if (stream->device() != current_device()) gpu_double_complain("a kernel was launched on another device's stream");
    stream->push([=, number = stream->device(), &kernel] { run_kernel(kernel, grid.x, boxes, number); });
    return cudaSuccess;
}

}  // namespace
}  // namespace gpu_double

using namespace gpu_double;

// The functions that nvcc's host code calls, with NVIDIA's names and signatures.
extern "C" {

int gpu_double_launches(const char* kernel) {
    const std::lock_guard lock(known().mutex);
    const auto found = known().launches.find(kernel);
    return found == known().launches.end() ? 0 : found->second;
}

void** __cudaRegisterFatBinary(void*) {
    static void* binary = nullptr;
    return &binary;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 1; }
void __cudaRegisterFunction(void**, const char* function, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
    const std::lock_guard lock(known().mutex);
    known().names[function] = name;
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream) {
    configurations.push_back({grid, block, shared, stream});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
    const Configuration top = configurations.back();
    configurations.pop_back();
    *grid = top.grid;
    *block = top.block;
    *shared = top.shared;
    *static_cast<cudaStream_t*>(stream) = top.stream;
    return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, std::size_t,
                               cudaStream_t stream) {
    return launch(kernel, grid, block, arguments, stream);
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, std::size_t,
                             cudaStream_t stream) {
    return launch(function, grid, block, arguments, stream);
}
}
