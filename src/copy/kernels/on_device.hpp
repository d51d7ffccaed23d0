// Marks code that is both plain C++ and code of a device. On the host it is always inlined: the kernels of each
// instruction set include it, and no copy of it may become the one that the whole program uses.
#pragma once

#if defined(__CUDACC__)
#define RESHARD_ON_DEVICE __host__ __device__ __forceinline__
#define RESHARD_UNROLL _Pragma("unroll")
#else
#define RESHARD_ON_DEVICE [[gnu::always_inline]] inline
#define RESHARD_UNROLL
#endif
