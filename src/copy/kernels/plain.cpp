// Compiled for every processor of the target: SSE2 on x86-64, NEON on AArch64.
#define KERNELS_NAMESPACE plain
#if defined(__aarch64__)
#define KERNELS_NAME "NEON"
#else
#define KERNELS_NAME "plain"
#endif
#define KERNELS_REGISTER 16
#include "src/copy/kernels/body.hpp"
