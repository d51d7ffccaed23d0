// Compiled for AVX2.
#if defined(__x86_64__)
#define KERNELS_NAMESPACE avx2
#define KERNELS_NAME "AVX2"
#define KERNELS_REGISTER 32
#include "src/copy/kernels/body.hpp"
#endif
