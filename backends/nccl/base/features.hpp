// The features of the installed NCCL. No other file looks at version numbers.
#pragma once

#include <nccl.h>

// A build may pretend to an older NCCL, to check that the rest compiles without the newer features.
#ifndef RESHARD_NCCL_VERSION
#define RESHARD_NCCL_VERSION NCCL_VERSION_CODE
#endif

#if RESHARD_NCCL_VERSION < 21800
#error "reshard::nccl needs NCCL 2.18 or newer: ncclCommSplit"
#endif

#define RESHARD_NCCL_HAS_MEMORY (RESHARD_NCCL_VERSION >= 21900)        // ncclMemAlloc, ncclCommRegister
#define RESHARD_NCCL_HAS_WINDOWS (RESHARD_NCCL_VERSION >= 22700)       // ncclCommWindowRegister
#define RESHARD_NCCL_HAS_ALL_TO_ALL (RESHARD_NCCL_VERSION >= 22803)    // ncclAlltoAll
#define RESHARD_NCCL_HAS_COPY_ENGINES (RESHARD_NCCL_VERSION >= 22800)  // NCCL_CTA_POLICY_ZERO
