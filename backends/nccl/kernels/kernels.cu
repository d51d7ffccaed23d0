// The kernels choose the box of a block and the place where its threads meet. The rest is in copy_body.hpp,
// fold_body.hpp and cast_body.hpp.
#include "backends/nccl/kernels/kernels.hpp"

namespace reshard::nccl {
namespace {

struct Work {
    const DeviceBox& box;
    std::uint32_t block;  // its number in the box
};

__device__ __forceinline__ Work work_of(const DeviceBoxes& boxes) {
    const DeviceBox& box = box_of(boxes, blockIdx.x);
    return {box, static_cast<std::uint32_t>(blockIdx.x - box.first_block)};
}

}  // namespace
}  // namespace reshard::nccl

using namespace reshard;
using namespace reshard::nccl;

#define X(name, Vector)                                                \
    extern "C" __global__ void __launch_bounds__(threads)              \
        reshard_copy_##name(const __grid_constant__ DeviceBoxes all) { \
        const Work work = work_of(all);                                \
        copy_rows<Vector>(work.box, work.block, threadIdx.x);          \
    }                                                                  \
    extern "C" __global__ void __launch_bounds__(threads)              \
        reshard_fill_##name(const __grid_constant__ DeviceBoxes all) { \
        const Work work = work_of(all);                                \
        fill_rows<Vector>(work.box, work.block, threadIdx.x);          \
    }
RESHARD_ROW_KERNELS(X)
#undef X

#define X(name, Word, pack)                                            \
    extern "C" __global__ void __launch_bounds__(threads)              \
        reshard_turn_##name(const __grid_constant__ DeviceBoxes all) { \
        __shared__ Tile<Word, pack> shared;                            \
        const Work work = work_of(all);                                \
        const TilePlace place = tile_place(work.box, work.block);      \
        read_tile<Word, pack>(work.box, place, threadIdx.x, shared);   \
        __syncthreads();                                               \
        write_tile<Word, pack>(work.box, place, threadIdx.x, shared);  \
    }
RESHARD_TILE_KERNELS(X)
#undef X

#define X(name, Element, ...)                                                          \
    extern "C" __global__ void __launch_bounds__(threads)                              \
        reshard_fold_##name(const __grid_constant__ DeviceBoxes all) {                 \
        const Work work = work_of(all);                                                \
        fold_rows<Element, ElementVector<Element>>(work.box, work.block, threadIdx.x); \
    }                                                                                  \
    extern "C" __global__ void __launch_bounds__(threads)                              \
        reshard_fold_##name##_wide(const __grid_constant__ DeviceBoxes all) {          \
        const Work work = work_of(all);                                                \
        fold_rows<Element, Word16>(work.box, work.block, threadIdx.x);                 \
    }
RESHARD_ELEMENTS(X)
#undef X

#define X(name, Element, ...)                                                         \
    extern "C" __global__ void __launch_bounds__(threads)                             \
        reshard_cast_##name(const __grid_constant__ DeviceBoxes all) {                \
        const Work work = work_of(all);                                               \
        cast_rows_to<Element, 1>(work.box, work.block, threadIdx.x);                  \
    }                                                                                 \
    extern "C" __global__ void __launch_bounds__(threads)                             \
        reshard_cast_##name##_wide(const __grid_constant__ DeviceBoxes all) {         \
        const Work work = work_of(all);                                               \
        cast_rows_to<Element, cast_pack<Element>>(work.box, work.block, threadIdx.x); \
    }
RESHARD_DTYPES(X, X)
#undef X

namespace reshard::nccl {

cudaError_t launch(Kernel kernel, const DeviceBoxes& boxes, std::uint32_t blocks, cudaStream_t stream) {
    switch (kernel) {
#define ONE(name)                                              \
    case Kernel::name:                                         \
        reshard_##name<<<blocks, threads, 0, stream>>>(boxes); \
        break;
#define X(name, Vector) ONE(copy_##name) ONE(fill_##name)
        RESHARD_ROW_KERNELS(X)
#undef X
#define X(name, Word, pack) ONE(turn_##name)
        RESHARD_TILE_KERNELS(X)
#undef X
#define X(name, Element, ...) ONE(fold_##name) ONE(fold_##name##_wide)
        RESHARD_ELEMENTS(X)
#undef X
#define X(name, Element, ...) ONE(cast_##name) ONE(cast_##name##_wide)
        RESHARD_DTYPES(X, X)
#undef X
#undef ONE
    }
    return cudaGetLastError();
}

}  // namespace reshard::nccl
