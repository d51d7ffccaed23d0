// Ranks as threads of this process, each with a GPU. Several machines need a program of their own: see README.
#include "tool/ranks/ranks.hpp"

#ifdef RESHARD_HAS_NCCL

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "reshard/backends/nccl.hpp"
#include "tool/console/exit.hpp"
#include "tool/ranks/thread_ranks.hpp"
#include "tool/request/request.hpp"

namespace reshard::cli {
namespace {

// One rank's communicator and backend, made and ended on its thread.
class Seat : NonCopyable {
public:
    Seat(ncclUniqueId id, Index rank, Index ranks) {
        cudaSetDevice(static_cast<int>(rank % nccl_devices()));
        const ncclResult_t code = ncclCommInitRank(&communicator_, static_cast<int>(ranks), id, static_cast<int>(rank));
        if (code != ncclSuccess) {
            communicator_ = nullptr;
            backend_ = fail(Code::backend, fmt::format("ncclCommInitRank: {}: {}", ncclGetErrorString(code),
                                                       ncclGetLastError(nullptr)));
        } else {
            backend_ = nccl::make_backend(communicator_);
        }
    }
    ~Seat() {
        if (backend_) backend_->reset();  // before the communicator that it was split from
        if (communicator_ != nullptr) ncclCommDestroy(communicator_);
    }
    [[nodiscard]] Result<std::unique_ptr<Backend>>& backend() { return backend_; }

private:
    ncclComm_t communicator_ = nullptr;
    Result<std::unique_ptr<Backend>> backend_ = nullptr;
};

class NcclRanks final : public Ranks {
public:
    NcclRanks(ncclUniqueId id, Index ranks) : id_(id), ranks_(ranks) {}

    std::string name() const override { return "nccl"; }
    bool one_process() const override { return true; }
    // The ranks' threads make their backends, and all backends have these capabilities.
    Capabilities capabilities() override { return capabilities_of("nccl", ranks_, 0).value(); }

    int drive(const std::function<int(Rank&)>& body) override {
        Barrier barrier(ranks_);
        return on_threads(ranks_, [&](Index r) { return sit(r, barrier, body); });
    }

private:
    int sit(Index r, Barrier& barrier, const std::function<int(Rank&)>& body) const {
        Seat seat(id_, r, ranks_);
        const std::string mine = seat.backend() ? std::string() : seat.backend().error().message;
        const std::vector<std::string> all = barrier.share(r, mine);
        const auto failed = std::find_if(all.begin(), all.end(), [](const std::string& one) { return !one.empty(); });
        if (failed != all.end()) {
            const Error error{Code::backend, fmt::format("rank {}: {}", failed - all.begin(), *failed)};
            return r == 0 ? complain(error) : exit_code(error.code);
        }
        ThreadRank rank(**seat.backend(), barrier);
        const int code = body(rank);
        rank.barrier();  // if ranks share a GPU, ends wait for each other's kernels
        return code;
    }

    ncclUniqueId id_;
    Index ranks_;
};

}  // namespace

Index nccl_devices() {
    int devices = 0;
    return cudaGetDeviceCount(&devices) == cudaSuccess ? devices : 0;
}

Result<std::unique_ptr<Ranks>> nccl_ranks(Index devices) {
    int found = 0;
    const cudaError_t counted = cudaGetDeviceCount(&found);
    if (counted != cudaSuccess || found == 0) {
        const char* const why = counted != cudaSuccess ? cudaGetErrorString(counted) : "there is none";
        return fail(Code::unsupported, fmt::format("--backend nccl needs a GPU: {}", why));
    }
    ncclUniqueId id;
    if (const ncclResult_t code = ncclGetUniqueId(&id); code != ncclSuccess) {
        return fail(Code::backend, fmt::format("ncclGetUniqueId: {}", ncclGetErrorString(code)));
    }
    return std::make_unique<NcclRanks>(id, devices);
}

}  // namespace reshard::cli

#else

namespace reshard::cli {

Index nccl_devices() { return 0; }

Result<std::unique_ptr<Ranks>> nccl_ranks(Index) {
    return fail(Code::unsupported, "this build has no nccl backend (it found no CUDA or NCCL when it was configured)");
}

}  // namespace reshard::cli

#endif
