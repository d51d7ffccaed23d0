// Compiled for AVX-512 (F, BW, DQ, VL).
#if defined(__x86_64__)
#define KERNELS_NAMESPACE avx512
#define KERNELS_NAME "AVX-512"
#define KERNELS_REGISTER 64
#include "src/copy/kernels/body.hpp"
#endif
