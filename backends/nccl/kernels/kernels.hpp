// The kernels by name. One list defines the enumeration, the device functions, their launches and their doubles.
#pragma once

#include <cuda_runtime_api.h>

#include <type_traits>

#include "backends/nccl/kernels/cast_body.hpp"
#include "backends/nccl/kernels/fold_body.hpp"

namespace reshard::nccl {

// X(name, type of a vector)
#define RESHARD_ROW_KERNELS(X) \
    X(1, std::uint8_t)         \
    X(2, std::uint16_t)        \
    X(4, std::uint32_t)        \
    X(8, Word8)                \
    X(16, Word16)

// X(name, type of a word, elements in it): packed words if everything is aligned, else one element per word
#define RESHARD_TILE_KERNELS(X)   \
    X(1, std::uint8_t, 1)         \
    X(1_packed, std::uint32_t, 4) \
    X(2, std::uint16_t, 1)        \
    X(2_packed, std::uint32_t, 2) \
    X(4, std::uint32_t, 1)        \
    X(8, Word8, 1)                \
    X(16, Word16, 1)

// The other kernels: fold_NAME for each type that can be reduced, and cast_NAME for each type that elements become. A
// kernel with the suffix _wide moves several elements at once.

/// The vector of one element. Complex numbers are aligned as their parts.
template <class Element>
using ElementVector =
    std::conditional_t<sizeof(Element) == sizeof(Word8x2), Word8x2, typename VectorOf<sizeof(Element)>::Type>;

enum class Kernel {
#define X(name, Vector) copy_##name, fill_##name,
    RESHARD_ROW_KERNELS(X)
#undef X
#define X(name, Word, pack) turn_##name,
        RESHARD_TILE_KERNELS(X)
#undef X
#define X(name, Element, ...) fold_##name, fold_##name##_wide,
            RESHARD_ELEMENTS(X)
#undef X
#define X(name, Element, ...) cast_##name, cast_##name##_wide,
                RESHARD_DTYPES(X, X)
#undef X
};

/// Enqueues one launch of `blocks` blocks on `stream`. Allocates nothing.
[[nodiscard]] cudaError_t launch(Kernel kernel, const DeviceBoxes& boxes, std::uint32_t blocks, cudaStream_t stream);

}  // namespace reshard::nccl
