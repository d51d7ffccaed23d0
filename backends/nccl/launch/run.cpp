#include "backends/nccl/launch/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/nccl/launch/launch_list.hpp"
#include "src/base/try.hpp"

namespace reshard::nccl {
namespace {

// "NCCL 2.28.9: ncclAllGather, messages in 4 pieces; communicators take 12345 bytes of the device"
std::string describe_ready(const Ready& ready) {
    std::vector<std::string> ways;
    for (const auto& steps : ready.arrays) {
        for (const StepProgram& step : steps) {
            if (step.pieces.empty()) continue;
            const auto& collective = step.pieces.front().collective;
            std::string way(collective ? call_name(collective->native) : "messages");
            if (step.pieces.size() > 1) way += fmt::format(" in {} pieces", step.pieces.size());
            if (ways.empty() || ways.back() != way) ways.push_back(std::move(way));
        }
    }
    int version = 0;
    static_cast<void>(ncclGetVersion(&version));
    return fmt::format("NCCL {}.{}.{}: {}; communicators take {:.1f} MiB of the device", version / 10000,
                       version / 100 % 100, version % 100,
                       ways.empty() ? "nothing travels" : fmt::format("{}", fmt::join(ways, ", ")),
                       static_cast<double>(ready.base->communicator_bytes()) / (1 << 20));
}

// One run in flight. Between two polls of its last event it looks for faults and at the clock.
class NcclRun final : public Ticket {
public:
    NcclRun(const Ready& ready, const LaunchList& script, std::span<const Event> ends, std::vector<double>& seconds)
        : ready_(ready), script_(script), ends_(ends), seconds_(seconds) {}
    ~NcclRun() override { static_cast<void>(wait()); }

    Result<bool> test() override {
        if (done_) return finished().map([] { return true; });
        const OnDevice current(ready_.base->device());
        const cudaError_t state = cudaEventQuery(ends_.back().get());
        if (state == cudaSuccess) {
            done_ = true;
            note_seconds();
            return true;
        }
        Result<void> wrong = state == cudaErrorNotReady ? ready_.base->fault() : checked(state, "cudaEventQuery");
        const auto timeout = ready_.base->options().timeout;
        if (wrong && Clock::now() - begun_ > timeout) {
            wrong = fail(Code::backend, fmt::format("no end within {} ms; a rank never came, or the stream is busy "
                                                    "with other work",
                                                    timeout.count()));
        }
        if (wrong) return false;
        abandon(wrong.error());
        return tl::unexpected(*error_);
    }

    Result<void> wait() override {
        Backoff backoff;
        for (;;) {
            RESHARD_TRY(const auto& done, test());
            if (done) return {};
            backoff.pause();
        }
    }

    Result<bool> wait_for(Index microseconds) override {
        const Clock::time_point until = Clock::now() + std::chrono::microseconds(microseconds);
        Backoff backoff;
        for (;;) {
            const auto done = test();
            if (!done || *done || Clock::now() >= until) return done;
            backoff.pause();
        }
    }

private:
    // After the abort the kernels end, and so does everything that was put on the stream behind them.
    void abandon(const Error& why) {
        done_ = true;
        error_ = Error{why.code, fmt::format("{}: {}", script_.describe_step(first_open_step()), why.message)};
        ready_.base->abort(*error_);
        cudaEventSynchronize(ends_.back().get());
    }
    [[nodiscard]] std::size_t first_open_step() const {
        for (std::size_t step = 0; step < script_.step_count(); ++step) {
            if (cudaEventQuery(ends_[step + 1].get()) != cudaSuccess) return step;
        }
        return script_.step_count() - 1;
    }
    void note_seconds() {
        for (std::size_t step = 0; step < script_.step_count(); ++step) {
            float milliseconds = 0;
            cudaEventElapsedTime(&milliseconds, ends_[step].get(), ends_[step + 1].get());
            seconds_[step] = static_cast<double>(milliseconds) * 1e-3;
        }
    }
    [[nodiscard]] Result<void> finished() const {
        if (error_) return tl::unexpected(*error_);
        return {};
    }

    const Ready& ready_;
    const LaunchList& script_;
    std::span<const Event> ends_;
    std::vector<double>& seconds_;
    Clock::time_point begun_ = Clock::now();
    bool done_ = false;
    std::optional<Error> error_;
};

// A run that was captured into a graph. Nothing is left to wait for here.
class CapturedRun final : public Ticket {
public:
    Result<bool> test() override { return true; }
    Result<void> wait() override { return {}; }
};

class NcclBound final : public Bound {
public:
    NcclBound(const Ready& ready, LaunchList script, std::vector<Event> ends)
        : ready_(ready), script_(std::move(script)), ends_(std::move(ends)), seconds_(script_.step_count(), 0.0) {}
    ~NcclBound() override {
        const OnDevice current(ready_.base->device());
        made_.reset();
        ends_.clear();
        script_ = {};
    }

    Result<std::unique_ptr<Ticket>> start() override { return start_on(nullptr); }

    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        Base& base = *ready_.base;
        RESHARD_CHECK(base.fault());
        const OnDevice current(base.device());
        const cudaStream_t stream = queue != nullptr ? static_cast<cudaStream_t>(queue) : base.stream();
        if (std::exchange(waits_, false)) {  // a stream that is captured takes this wait into its graph
            const cudaError_t waited = cudaStreamWaitEvent(stream, made_->get(), 0);
            RESHARD_CHECK(checked(waited, "cudaStreamWaitEvent"));
        }
        cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
        const cudaError_t asked = cudaStreamIsCapturing(stream, &capturing);
        RESHARD_CHECK(checked(asked, "cudaStreamIsCapturing"));
        const bool captured = capturing != cudaStreamCaptureStatusNone;
        if (auto done = issue(stream, captured); !done) {
            base.abort(done.error());  // peers may be waiting for work that was not issued
            return tl::unexpected(done.error());
        }
        if (captured) return std::make_unique<CapturedRun>();
        return std::make_unique<NcclRun>(ready_, script_, ends_, seconds_);
    }

    [[nodiscard]] bool queued() const override { return true; }
    Result<void> wait_for_queue(void* queue) override {
        const OnDevice current(ready_.base->device());
        if (!made_) {
            RESHARD_ASSIGN(made_, Event::make(false));
        }
        const cudaError_t recorded = cudaEventRecord(made_->get(), static_cast<cudaStream_t>(queue));
        waits_ = recorded == cudaSuccess;
        return checked(recorded, "cudaEventRecord");
    }
    [[nodiscard]] void* event() const override { return ends_.back().get(); }

    [[nodiscard]] std::vector<double> step_seconds() const override { return seconds_; }

private:
    // A graph has only the last event, and others may wait for it there.
    [[nodiscard]] Result<void> issue(cudaStream_t stream, bool captured) const {
        if (captured) {
            RESHARD_CHECK(script_.issue(ready_, stream, {}));
            return checked(cudaEventRecord(ends_.back().get(), stream), "cudaEventRecord");
        }
        const cudaError_t begun = cudaEventRecord(ends_.front().get(), stream);
        RESHARD_CHECK(checked(begun, "cudaEventRecord"));
        return script_.issue(ready_, stream, ends_);
    }

    const Ready& ready_;
    LaunchList script_;
    std::vector<Event> ends_;    // the begin, and the end of every step
    std::optional<Event> made_;  // after the sources that a queue makes
    bool waits_ = false;         // the next start waits for that event
    std::vector<double> seconds_;
};

class NcclPrepared final : public Prepared {
public:
    explicit NcclPrepared(std::unique_ptr<Ready> ready) : ready_(std::move(ready)) {}
    ~NcclPrepared() override {
        const OnDevice current(ready_->base->device());
        ready_.reset();
    }

    [[nodiscard]] Index staging_bytes() const override { return ready_->staging_bytes; }
    // NCCL takes operations in one order on all ranks. That order is lost: anything that starts from now on would hang.
    void abandon(const Error& why) override {
        const OnDevice current(ready_->base->device());
        ready_->base->abort(why);
    }
    [[nodiscard]] std::string describe() const override { return describe_ready(*ready_); }

    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        const OnDevice current(ready_->base->device());
        RESHARD_TRY(auto& script, LaunchList::write(*ready_, buffers));
        std::vector<Event> ends;
        for (std::size_t i = 0; i <= script.step_count(); ++i) {
            RESHARD_TRY(auto& event, Event::make(true));
            ends.push_back(std::move(event));
        }
        return std::make_unique<NcclBound>(*ready_, std::move(script), std::move(ends));
    }

private:
    std::unique_ptr<Ready> ready_;
};

}  // namespace

std::unique_ptr<Prepared> prepared(std::unique_ptr<Ready> ready) {
    return std::make_unique<NcclPrepared>(std::move(ready));
}

}  // namespace reshard::nccl
