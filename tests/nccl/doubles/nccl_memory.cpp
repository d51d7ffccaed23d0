// NCCL's calls on memory.
#include <set>

#include "registry.hpp"

using namespace nccl_double;

namespace {

struct Allocated {
    std::mutex mutex;
    std::map<void*, std::size_t> bytes;
    std::set<void*> registered;  // handles
};
Allocated& allocated() {
    static Allocated* only = new Allocated;
    return *only;
}

}  // namespace

extern "C" {

ncclResult_t ncclMemAlloc(void** made, std::size_t bytes) {
    count_call("ncclMemAlloc");
    if (cudaMalloc(made, bytes) != cudaSuccess) return ncclUnhandledCudaError;
    const std::lock_guard lock(allocated().mutex);
    allocated().bytes[*made] = bytes;
    return ncclSuccess;
}
ncclResult_t ncclMemFree(void* address) {
    {
        const std::lock_guard lock(allocated().mutex);
        if (allocated().bytes.erase(address) == 0) gpu_double_complain("ncclMemFree of memory from elsewhere");
    }
    return cudaFree(address) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclCommRegister(const ncclComm_t handle, void* address, std::size_t bytes, void** registered) {
    count_call("ncclCommRegister");
    const auto own = find(handle);
    if (const auto error = usable(own); error != ncclSuccess) return error;
    if (!is_ours(*own, address, bytes)) return refused(ncclInvalidArgument, "memory was registered that is not here");
    *registered = new char;  // each registration has its own handle, since memory may be registered more than once
    const std::lock_guard lock(allocated().mutex);
    allocated().registered.insert(*registered);
    return ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t handle, void* registered) {
    count_call("ncclCommDeregister");
    {
        const std::lock_guard lock(allocated().mutex);
        if (allocated().registered.erase(registered) == 0) {
            gpu_double_complain("ncclCommDeregister of what is not registered");
        } else {
            delete static_cast<char*>(registered);
        }
    }
    return usable(find(handle));
}

ncclResult_t ncclCommWindowRegister(ncclComm_t handle, void* address, std::size_t bytes, ncclWindow_t* window, int) {
    count_call("ncclCommWindowRegister");
    const auto own = find(handle);
    if (const auto error = usable(own); error != ncclSuccess) return error;
    {
        const std::lock_guard lock(allocated().mutex);
        if (!allocated().bytes.contains(address)) {
            return refused(ncclInvalidArgument, "a window needs memory from ncclMemAlloc");
        }
    }
    Clique& clique = *own->clique;
    std::unique_lock lock(clique.mutex);
    auto& sizes = clique.windows[own->windows++];
    sizes[own->rank] = bytes;
    clique.changed.notify_all();
    const auto all_came = [&] { return static_cast<int>(sizes.size()) == clique.ranks; };
    if (!wait(lock, *own, "a window waits for ranks", all_came)) return ncclSystemError;
    for (const auto& [rank, size] : sizes) {
        if (size != bytes) return refused(ncclInvalidArgument, "a window's sizes differ");
    }
    *window = static_cast<ncclWindow_t>(address);
    return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t handle, ncclWindow_t) { return usable(find(handle)); }
}
