// The family of dispatch.hpp, included once for each instruction set by a source compiled for it, which defines
//   KERNELS_NAMESPACE   a name of its own
//   KERNELS_NAME        the same for people
//   KERNELS_REGISTER    bytes of a vector register
// Code here calls nothing from the standard library except memcpy: an inline function compiled for a newer processor
// must not become the copy that the whole program uses. Vectors are compiler vectors (GCC, Clang), so the same text is
// AVX-512, AVX2, SSE2 or NEON. Only non-temporal stores and prefetches have names of their own.
#pragma once

#include "src/copy/kernels/transpose.hpp"

namespace reshard::KERNELS_NAMESPACE {

extern const CopyKernels kernels;
const CopyKernels kernels = {KERNELS_NAME,
                             {copy_rows, stream_rows},
                             {copy_lanes, stream_lanes},
                             {{copy_transposed<Turn1>, copy_transposed<Turn2>, copy_transposed<Turn4>,
                               copy_transposed<Turn8>, copy_transposed<Turn16>},
                              {stream_transposed<Turn1>, stream_transposed<Turn2>, stream_transposed<Turn4>,
                               stream_transposed<Turn8>, stream_transposed<Turn16>}}};

}  // namespace reshard::KERNELS_NAMESPACE
