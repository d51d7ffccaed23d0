#include "registry.hpp"

namespace nccl_double {
namespace {

constexpr std::size_t communicator_bytes = 1 << 16;

struct All {
    std::mutex mutex;
    std::map<ncclComm_t, std::shared_ptr<ncclComm>> communicators;
    std::map<std::string, int> calls;
};
All& all() {
    static All* only = new All;
    return *only;
}

thread_local int group_depth = 0;
thread_local ncclResult_t group_error = ncclSuccess;

}  // namespace

void count_call(const char* name) {
    const std::lock_guard lock(all().mutex);
    ++all().calls[name];
}

ncclResult_t refused(ncclResult_t error, const char* what) {
    gpu_double_complain(what);
    if (in_group()) group_error = error;
    return error;
}

ncclResult_t take_group_error() { return std::exchange(group_error, ncclSuccess); }
void begin_group() { ++group_depth; }
int end_group() { return group_depth == 0 ? -1 : --group_depth; }
bool in_group() { return group_depth > 0; }

std::shared_ptr<ncclComm> find(ncclComm_t handle) {
    const std::lock_guard lock(all().mutex);
    const auto found = all().communicators.find(handle);
    return found == all().communicators.end() ? nullptr : found->second;
}

bool reserve(ncclComm& own, std::size_t bytes) {
    if (!gpu_double_reserve(own.device, bytes)) return false;
    own.reserved += bytes;
    return true;
}

ncclComm_t make(const std::shared_ptr<Clique>& clique, int rank, int device, bool blocking) {
    auto made = std::make_shared<ncclComm>();
    made->clique = clique;
    made->rank = rank;
    made->device = device;
    made->blocking = blocking;
    if (!reserve(*made, communicator_bytes)) return nullptr;
    const std::lock_guard lock(all().mutex);
    return all().communicators.emplace(made.get(), made).first->first;
}

void forget(const std::shared_ptr<ncclComm>& own) {
    gpu_double_release(own->device, own->reserved);
    own->reserved = 0;
    own->in_progress = nullptr;
    const std::lock_guard lock(all().mutex);
    all().communicators.erase(own.get());
}

bool is_ours(const ncclComm& own, const void* address, std::size_t bytes) {
    return bytes == 0 || gpu_double_owner(address, bytes) == own.device;
}

ncclResult_t usable(const std::shared_ptr<ncclComm>& own) {
    if (!own) return refused(ncclInvalidArgument, "a communicator was used that does not exist");
    if (own->in_progress) return refused(ncclInvalidUsage, "a communicator was used while it is in progress");
    if (own->failure != ncclSuccess) return refused(ncclInvalidUsage, "a communicator was used after it failed");
    int device = -1;
    cudaGetDevice(&device);
    if (device != own->device) return refused(ncclInvalidUsage, "a communicator was used from another device");
    return ncclSuccess;
}

}  // namespace nccl_double

using namespace nccl_double;

extern "C" {

int nccl_double_communicators() {
    const std::lock_guard lock(all().mutex);
    return static_cast<int>(all().communicators.size());
}
int nccl_double_calls(const char* name) {
    const std::lock_guard lock(all().mutex);
    const auto found = all().calls.find(name);
    return found == all().calls.end() ? 0 : found->second;
}
}
