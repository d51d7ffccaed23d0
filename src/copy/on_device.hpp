// Macros for code that compiles both as plain C++ and for a device.
#pragma once

#if defined(__CUDACC__)
#define RESHARD_ON_DEVICE __host__ __device__ __forceinline__
#define RESHARD_UNROLL _Pragma("unroll")
#else
#define RESHARD_ON_DEVICE inline
#define RESHARD_UNROLL
#endif
