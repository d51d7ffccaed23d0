// The kernels of dispatch.hpp. A source for each instruction set includes this once, after it has defined
//   KERNELS_NAMESPACE   a name of its own
//   KERNELS_NAME        the same for people
//   KERNELS_REGISTER    bytes of a vector register
// Call nothing of the standard library here but memcpy: an inline function compiled for a newer processor must not
// become the one that the whole program uses. Vectors are the compilers' (GCC, Clang), so the same text is AVX-512,
// AVX2, SSE2 or NEON. Only non-temporal stores and prefetches have their own names.
#pragma once

#include "src/copy/kernels/casts.hpp"

namespace reshard::KERNELS_NAMESPACE {

extern const CopyKernels kernels;
const CopyKernels kernels = {
    KERNELS_NAME,
    {copy_rows, stream_rows},
    {copy_lanes, stream_lanes},
    {{copy_transposed<Turn1>, copy_transposed<Turn2>, copy_transposed<Turn4>, copy_transposed<Turn8>,
      copy_transposed<Turn16>},
     {stream_transposed<Turn1>, stream_transposed<Turn2>, stream_transposed<Turn4>, stream_transposed<Turn8>,
      stream_transposed<Turn16>}},
    {sum_products<Pass::read>, sum_products<Pass::copy>, sum_products<Pass::stream>},
    {{cast_run<float, std::uint16_t, to_bfloat16>, cast_run<std::uint16_t, float, from_bfloat16>,
      cast_run<float, std::uint16_t, to_half>, cast_run<std::uint16_t, float, from_half>},
     {stream_cast<float, std::uint16_t, to_bfloat16>, stream_cast<std::uint16_t, float, from_bfloat16>,
      stream_cast<float, std::uint16_t, to_half>, stream_cast<std::uint16_t, float, from_half>}}};

}  // namespace reshard::KERNELS_NAMESPACE
