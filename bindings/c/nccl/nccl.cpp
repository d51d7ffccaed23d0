#include "reshard/backends/nccl.hpp"

#include "bindings/c/answer.hpp"
#include "reshard/c_nccl.h"

namespace reshard::c {
namespace {

Result<nccl::Options> nccl_options_of(const reshard_nccl_options* given) {
    RESHARD_TRY(const auto& asked,
                structure<reshard_nccl_options>(given, RESHARD_NCCL_OPTIONS_INITIALIZER, "reshard_nccl_options"));
    RESHARD_CHECK(need_count(asked.timeout_ms, 0, "timeout_ms"));
    RESHARD_CHECK(need_count(asked.staging_bytes_max, 0, "staging_bytes_max"));
    RESHARD_TRY(const std::size_t communicators, need_count(asked.communicators_max, 0, "communicators_max"));
    nccl::Options options;
    options.stream = static_cast<cudaStream_t>(asked.stream);
    options.timeout = std::chrono::milliseconds(asked.timeout_ms);
    options.staging_bytes_max = asked.staging_bytes_max;
    options.communicators_max = communicators;
    options.ordered_sums = asked.ordered_sums != 0;
    options.share_resources = asked.share_resources != 0;
    options.windows = asked.windows != 0;
    return options;
}

}  // namespace
}  // namespace reshard::c

using namespace reshard;
using namespace reshard::c;

extern "C" {

int reshard_nccl_backend(ncclComm_t communicator, const reshard_nccl_options* options, reshard_backend** backend,
                         reshard_error** error) {
    return make_backend(
        backend, error, [&] { return nccl_options_of(options); },
        [&](const Error& why) { nccl::refuse(communicator, why); },
        [&](const nccl::Options& asked) { return nccl::make_backend(communicator, asked); });
}

int reshard_nccl_allocate_window(reshard_backend* backend, int64_t bytes, reshard_memory** memory,
                                 reshard_error** error) {
    return make_together(memory, error, [&](const Result<void>& placed) -> Result<std::unique_ptr<reshard_memory>> {
        RESHARD_TRY(auto* const rank, need(backend));
        const auto asked = placed.and_then([&] { return need_count(bytes, 0, "bytes"); });
        RESHARD_TRY(auto& made, nccl::allocate_window(rank->backend, asked.map([&](std::size_t) { return bytes; })));
        return std::make_unique<reshard_memory>(rank, std::move(made));
    });
}

}  // extern "C"
