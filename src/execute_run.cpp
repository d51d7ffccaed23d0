#include "execute_run.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reshard {

namespace {

using State = std::shared_ptr<Executor::RunState>;
using Buckets = std::shared_ptr<const BoundBuckets>;  // a run keeps them: callers may drop them while it is in flight

class GuardedTicket final : public Ticket {
public:
    GuardedTicket(Buckets buckets, std::vector<std::unique_ptr<Ticket>> started, State state)
        : buckets_(std::move(buckets)), runs_(std::move(started)), state_(std::move(state)) {
        if (buckets_->bounds.empty()) finish();
    }
    ~GuardedTicket() override {
        if (!over_) static_cast<void>(wait());  // a run that is dropped has nobody to tell; the state remembers
    }
    GuardedTicket(const GuardedTicket&) = delete;
    GuardedTicket& operator=(const GuardedTicket&) = delete;

    Result<bool> test() override {
        while (!over_) {
            const auto done = current() ? runs_[at_]->test() : Result<bool>(tl::unexpected(state_->first_error));
            if (!done) end(done.error());
            if (done && !*done) return false;
            next();
        }
        return ended().transform([] { return true; });
    }
    Result<void> wait() override {
        while (!over_) {
            const auto done = current() ? runs_[at_]->wait() : Result<void>(tl::unexpected(state_->first_error));
            if (!done) end(done.error());
            next();
        }
        return ended();
    }

private:
    // The bucket's run, started when those before it are done; false when it does not start.
    bool current() {
        if (at_ < runs_.size()) return true;
        auto run = buckets_->bounds[at_]->start();
        if (run)
            runs_.push_back(std::move(*run));
        else
            state_->first_error = run.error();
        return at_ < runs_.size();
    }
    void end(const Error& error) {
        failed_ = true;
        state_->failed = true;
        state_->first_error = error;
        finish();
    }
    void next() {
        if (!over_ && ++at_ == buckets_->bounds.size()) finish();
    }
    void finish() {
        over_ = true;
        runs_.clear();
        state_->in_flight = false;
    }
    [[nodiscard]] Result<void> ended() const {
        if (failed_) return tl::unexpected(state_->first_error);
        return {};
    }

    Buckets buckets_;
    std::vector<std::unique_ptr<Ticket>> runs_;  // of the buckets that have started
    State state_;
    std::size_t at_ = 0;
    bool over_ = false;
    bool failed_ = false;
};

class GuardedBound final : public Bound {
public:
    GuardedBound(Buckets buckets, State state) : buckets_(std::move(buckets)), state_(std::move(state)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        return guarded(std::min<std::size_t>(1, buckets_->bounds.size()), [](Bound& bound) { return bound.start(); });
    }
    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        return guarded(buckets_->bounds.size(), [&](Bound& bound) { return bound.start_on(queue); });
    }
    // Of all pieces of an array together.
    [[nodiscard]] std::vector<double> step_seconds() const override {
        std::vector<double> seconds;
        for (std::size_t b = 0; b < buckets_->bounds.size(); ++b) {
            const std::vector<std::size_t>& steps = buckets_->steps[b];
            const std::vector<double> of_pieces = buckets_->bounds[b]->step_seconds();
            for (std::size_t i = 0; i < of_pieces.size() && i < steps.size(); ++i) {
                if (seconds.size() <= steps[i]) seconds.resize(steps[i] + 1, 0.0);
                seconds[steps[i]] += of_pieces[i];
            }
        }
        return seconds;
    }

private:
    template <class Start>
    Result<std::unique_ptr<Ticket>> guarded(std::size_t at_once, const Start& start) {
        if (state_->failed) {
            return fail(Code::backend, fmt::format("an earlier run of this executor failed, prepare it anew: {}",
                                                   state_->first_error.message));
        }
        if (state_->in_flight) return fail(Code::mismatch, "another run of this executor is still in flight");
        std::vector<std::unique_ptr<Ticket>> started;
        for (std::size_t i = 0; i < at_once; ++i) {
            auto run = start(*buckets_->bounds[i]);
            if (!run && run.error().code == Code::unsupported && i == 0) return run;  // nothing was started
            if (!run) {
                state_->failed = true;
                state_->first_error = run.error();
                return run;
            }
            started.push_back(std::move(*run));
        }
        state_->in_flight = true;
        return std::make_unique<GuardedTicket>(buckets_, std::move(started), state_);
    }

    Buckets buckets_;
    State state_;
};

}  // namespace

std::unique_ptr<Bound> guarded(BoundBuckets buckets, std::shared_ptr<Executor::RunState> state) {
    return std::make_unique<GuardedBound>(std::make_shared<const BoundBuckets>(std::move(buckets)), std::move(state));
}

}  // namespace reshard
