// Finds the doubles' own functions by name; null if the program runs on the real libraries.
#pragma once

#include <dlfcn.h>

namespace reshard::nccl::test {

template <class Function>
Function* found(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

/// True on the doubles.
inline bool on_doubles() { return dlsym(RTLD_DEFAULT, "gpu_double_owner") != nullptr; }

}  // namespace reshard::nccl::test
