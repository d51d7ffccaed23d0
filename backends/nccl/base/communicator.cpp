#include "backends/nccl/base/communicator.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "backends/nccl/base/features.hpp"
#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {

void Backoff::pause() {
    constexpr int yields = 64;
    constexpr int sleeps = 64;
    ++pauses_;
    if (pauses_ <= yields) {
        std::this_thread::yield();
    } else {
        std::this_thread::sleep_for(std::chrono::microseconds(pauses_ <= yields + sleeps ? 20 : 500));
    }
}

Result<void> settle(ncclComm_t communicator, std::chrono::milliseconds timeout) {
    const Clock::time_point end = Clock::now() + timeout;
    Backoff backoff;
    for (;;) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
        RESHARD_CHECK(checked(asked, "ncclCommGetAsyncError"));
        if (state == ncclSuccess) return {};
        if (state != ncclInProgress) return fault_of(communicator);
        if (Clock::now() > end) {
            return fail(Code::backend, fmt::format("NCCL did not come to an end within {} ms", timeout.count()));
        }
        if (Interrupt::raised()) return fail(Code::backend, Interrupt::words);
        backoff.pause();
    }
}

Result<void> fault_of(ncclComm_t communicator) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
    RESHARD_CHECK(checked(asked, "ncclCommGetAsyncError"));
    if (state == ncclSuccess || state == ncclInProgress) return {};
    const std::string_view last = ncclGetLastError(communicator);
    return fail(Code::backend, fmt::format("NCCL: {}{}{}", ncclGetErrorString(state), last.empty() ? "" : ": ", last));
}

Result<void> run_exchange(const Exchange& exchange, ncclComm_t communicator, cudaStream_t stream) {
    RESHARD_CHECK(checked(ncclGroupStart(), "ncclGroupStart"));
    Result<void> result;
    for (const Exchange::End& end : exchange.receives) {
        const ncclResult_t code = ncclRecv(end.start, end.bytes, ncclUint8, end.peer, communicator, stream);
        if (auto done = checked(code, "ncclRecv"); !done && result) result = done;
    }
    for (const Exchange::End& end : exchange.sends) {
        const ncclResult_t code = ncclSend(end.start, end.bytes, ncclUint8, end.peer, communicator, stream);
        if (auto done = checked(code, "ncclSend"); !done && result) result = done;
    }
    const Result<void> ended = checked(ncclGroupEnd(), "ncclGroupEnd");
    return result ? ended : result;
}

Result<std::shared_ptr<Communicator>> Communicator::split(ncclComm_t parent, int color, int key,
                                                          const Options& options) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.splitShare = options.share_resources ? 1 : 0;
#if RESHARD_NCCL_HAS_COPY_ENGINES
    if (options.windows && options.copy_engines) config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#endif
    auto written = std::make_unique<ncclComm_t>(nullptr);
    const ncclResult_t code = ncclCommSplit(parent, color, key, written.get(), &config);
    RESHARD_CHECK(checked(code, "ncclCommSplit"));
    if (auto done = settle(parent, options.timeout); !done) {
        static_cast<void>(written.release());  // NCCL may still write it
        return tl::unexpected(done.error());
    }
    const ncclComm_t made = *written;
    if (made == nullptr) return nullptr;
    std::shared_ptr<Communicator> owned(new Communicator(made));
    if (auto done = settle(made, options.timeout); !done) {
        owned->abort();
        return tl::unexpected(done.error());
    }
    return owned;
}

void Communicator::abort() {
    if (communicator_ != nullptr) ncclCommAbort(std::exchange(communicator_, nullptr));
}

Communicator::~Communicator() {
    if (communicator_ != nullptr) ncclCommDestroy(communicator_);
}

}  // namespace reshard::nccl
