// A user's program for GPUs, as far as it runs without one.
#include <cstdio>
#include <reshard/backends/nccl.hpp>
#include <reshard/reshard.hpp>

int main() {
    const auto backend = reshard::nccl::make_backend(nullptr);
    std::printf("%s\n", backend ? "a backend on nothing" : backend.error().message.c_str());
    return backend ? 1 : 0;
}
