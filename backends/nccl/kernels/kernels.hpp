// The kernels by name. One list makes the enumeration, the device functions, their launches and their doubles.
#pragma once

#include <cuda_runtime_api.h>

#include "backends/nccl/kernels/fold_body.hpp"

namespace reshard::nccl {

// X(name, type of a vector)
#define RESHARD_ROW_KERNELS(X) \
    X(1, std::uint8_t)         \
    X(2, std::uint16_t)        \
    X(4, std::uint32_t)        \
    X(8, Word8)                \
    X(16, Word16)

// X(name, type of a word, elements in it): packed words where everything is aligned, else one element a word
#define RESHARD_TILE_KERNELS(X)   \
    X(1, std::uint8_t, 1)         \
    X(1_packed, std::uint32_t, 4) \
    X(2, std::uint16_t, 1)        \
    X(2_packed, std::uint32_t, 2) \
    X(4, std::uint32_t, 1)        \
    X(8, Word8, 1)                \
    X(16, Word16, 1)

// X(name, element type, type of a vector of one element)
#define RESHARD_FOLD_KERNELS(X)                   \
    X(boolean, Boolean, std::uint8_t)             \
    X(i8, Integer<std::int8_t>, std::uint8_t)     \
    X(u8, Integer<std::uint8_t>, std::uint8_t)    \
    X(i16, Integer<std::int16_t>, std::uint16_t)  \
    X(u16, Integer<std::uint16_t>, std::uint16_t) \
    X(i32, Integer<std::int32_t>, std::uint32_t)  \
    X(u32, Integer<std::uint32_t>, std::uint32_t) \
    X(i64, Integer<std::int64_t>, Word8)          \
    X(u64, Integer<std::uint64_t>, Word8)         \
    X(f16, Floating<Half>, std::uint16_t)         \
    X(bf16, Floating<Brain>, std::uint16_t)       \
    X(f32, Floating<Whole<float>>, std::uint32_t) \
    X(f64, Floating<Whole<double>>, Word8)        \
    X(c64, Complex<float>, Word8)                 \
    X(c128, Complex<double>, Word8x2)

enum class Kernel {
#define X(name, Vector) copy_##name, fill_##name,
    RESHARD_ROW_KERNELS(X)
#undef X
#define X(name, Word, pack) turn_##name,
        RESHARD_TILE_KERNELS(X)
#undef X
#define X(name, Element, Vector) fold_##name, fold_##name##_wide,
            RESHARD_FOLD_KERNELS(X)
#undef X
};

/// Puts one launch of `blocks` blocks in the order of `stream`. Nothing is allocated.
[[nodiscard]] cudaError_t launch(Kernel kernel, const DeviceBoxes& boxes, std::uint32_t blocks, cudaStream_t stream);

}  // namespace reshard::nccl
