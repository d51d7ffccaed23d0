// NCCL's calls that make, end and query communicators.
#include <algorithm>
#include <cstring>

#include "registry.hpp"

using namespace nccl_double;

namespace {

struct Worlds {
    std::mutex mutex;
    std::map<std::string, std::shared_ptr<Clique>> by_id;
    int ids = 0;
};
Worlds& worlds() {
    static Worlds* only = new Worlds;
    return *only;
}

ncclResult_t join(ncclComm_t* out, const std::shared_ptr<Clique>& clique, int rank, int device, bool blocking) {
    std::unique_lock lock(clique->mutex);
    ++clique->joined;
    clique->changed.notify_all();
    const std::chrono::milliseconds timeout(timeout_milliseconds());
    if (!clique->changed.wait_for(lock, timeout, [&] { return clique->joined >= clique->ranks; })) {
        return refused(ncclSystemError, "real NCCL would hang: a rank did not come to the communicator's start");
    }
    *out = make(clique, rank, device, blocking);
    return *out != nullptr ? ncclSuccess : ncclUnhandledCudaError;
}

// Makes this rank's communicator of a split once all ranks have chosen.
bool finish_split(const std::shared_ptr<ncclComm>& parent, long number, ncclComm_t* out, bool blocking) {
    Clique& clique = *parent->clique;
    std::shared_ptr<Clique> joined;
    int rank = 0;
    {
        const std::lock_guard lock(clique.mutex);
        Split& split = clique.splits[number];
        if (static_cast<int>(split.choices.size()) < clique.ranks) return false;
        const auto [color, key] = split.choices[parent->rank];
        if (color == NCCL_SPLIT_NOCOLOR) return true;
        int members = 0;
        for (const auto& [other, choice] : split.choices) {
            if (choice.first != color) continue;
            ++members;
            if (std::pair(choice.second, other) < std::pair(key, parent->rank)) ++rank;
        }
        auto& made = split.made[color];
        if (!made) made = std::make_shared<Clique>(members);
        joined = made;
    }
    *out = make(joined, rank, parent->device, blocking);
    if (*out == nullptr) parent->failure = ncclUnhandledCudaError;
    return true;
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    const std::lock_guard lock(worlds().mutex);
    std::memset(id, 0, sizeof *id);
    const std::string name = "double " + std::to_string(++worlds().ids);
    std::copy(name.begin(), name.end(), id->internal);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* out, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
    int device = 0;
    cudaGetDevice(&device);
    std::shared_ptr<Clique> clique;
    {
        const std::lock_guard lock(worlds().mutex);
        auto& world = worlds().by_id[id.internal];
        if (!world) world = std::make_shared<Clique>(ranks);
        clique = world;
    }
    return join(out, clique, rank, device, config == nullptr || config->blocking != 0);
}
ncclResult_t ncclCommInitRank(ncclComm_t* out, int ranks, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(out, ranks, id, rank, nullptr);
}
ncclResult_t ncclCommInitAll(ncclComm_t* out, int ranks, const int* devices) {
    const auto clique = std::make_shared<Clique>(ranks);
    clique->joined = ranks;
    for (int rank = 0; rank < ranks; ++rank) {
        out[rank] = make(clique, rank, devices != nullptr ? devices[rank] : rank, true);
        if (out[rank] == nullptr) return ncclUnhandledCudaError;
    }
    return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t handle, int color, int key, ncclComm_t* out, ncclConfig_t* config) {
    count_call("ncclCommSplit");
    if (config != nullptr && config->CTAPolicy == NCCL_CTA_POLICY_ZERO) count_call("NCCL_CTA_POLICY_ZERO");
    const auto parent = find(handle);
    if (const auto error = usable(parent); error != ncclSuccess) return error;
    *out = nullptr;
    const bool blocking =
        config == nullptr || config->blocking == NCCL_CONFIG_UNDEF_INT ? parent->blocking : config->blocking != 0;
    const long number = parent->splits++;
    std::unique_lock lock(parent->clique->mutex);
    parent->clique->splits[number].choices[parent->rank] = {color, key};
    parent->clique->changed.notify_all();
    if (!parent->blocking) {
        lock.unlock();
        parent->in_progress = [parent = parent.get(), number, out, blocking] {
            const auto kept = find(parent);
            return !kept || finish_split(kept, number, out, blocking);
        };
        return ncclInProgress;
    }
    const auto all_chose = [&] {
        return static_cast<int>(parent->clique->splits[number].choices.size()) == parent->clique->ranks;
    };
    if (!wait(lock, *parent, "ncclCommSplit waits for ranks", all_chose)) return ncclSystemError;
    lock.unlock();
    finish_split(parent, number, out, blocking);
    return parent->failure == ncclSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
    const auto own = find(handle);
    if (!own) return refused(ncclInvalidArgument, "a communicator was asked that does not exist");
    if (own->in_progress && own->in_progress()) own->in_progress = nullptr;
    const std::lock_guard lock(own->clique->mutex);
    *error = static_cast<ncclResult_t>(own->failure.load());
    if (*error == ncclSuccess && !own->clique->wrong.empty()) *error = ncclRemoteError;
    if (*error == ncclSuccess && own->in_progress) *error = ncclInProgress;
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }

// Like the real call, it waits for the communicator's work.
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
    const auto own = find(handle);
    if (!own) return refused(ncclInvalidArgument, "a communicator was destroyed that does not exist");
    std::unique_lock lock(own->clique->mutex);
    own->clique->changed.wait(lock, [&] { return own->open == 0; });
    lock.unlock();
    forget(own);
    return ncclSuccess;
}

// Ends only this rank's work. Peers learn nothing, because over a network no one may be there to tell them.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
    count_call("ncclCommAbort");
    const auto own = find(handle);
    if (!own) return refused(ncclInvalidArgument, "a communicator was aborted that does not exist");
    std::unique_lock lock(own->clique->mutex);
    own->aborted = true;
    own->clique->changed.notify_all();
    own->clique->changed.wait(lock, [&] { return own->open == 0; });
    lock.unlock();
    forget(own);
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
    *count = find(handle)->clique->ranks;
    return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
    *rank = find(handle)->rank;
    return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
    *device = find(handle)->device;
    return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t error) {
    switch (error) {
        case ncclSuccess:
            return "no error";
        case ncclUnhandledCudaError:
            return "unhandled cuda error";
        case ncclSystemError:
            return "unhandled system error";
        case ncclInvalidArgument:
            return "invalid argument";
        case ncclInvalidUsage:
            return "invalid usage";
        case ncclRemoteError:
            return "remote process exited or there was a network error";
        case ncclInProgress:
            return "NCCL operation in progress";
        default:
            return "internal error";
    }
}
const char* ncclGetLastError(ncclComm_t handle) {
    const auto own = find(handle);
    if (!own) return "";
    const std::lock_guard lock(own->clique->mutex);
    return own->clique->wrong.c_str();
}
}
