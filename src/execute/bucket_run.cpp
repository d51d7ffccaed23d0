#include "src/execute/bucket_run.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include "src/execute/flights.hpp"

namespace reshard {

namespace {

using State = std::shared_ptr<Executor::RunState>;
using Buckets = std::shared_ptr<const BoundBuckets>;  // a run keeps them: callers may drop them while it is in flight

// Between two looks at the other runs.
constexpr Index slice = 100;  // microseconds

class GuardedTicket final : public Ticket, private Flight {
public:
    GuardedTicket(Buckets buckets, std::vector<std::unique_ptr<Ticket>> started, State state)
        : buckets_(std::move(buckets)),
          runs_(std::move(started)),
          state_(std::move(state)),
          flights_(Flights::of_this_thread()) {
        if (buckets_->bounds.empty()) {
            finish();
        } else {
            flights_->add(*this);
            listed_ = true;
        }
    }
    ~GuardedTicket() override {
        static_cast<void>(wait());  // a run that is dropped has nobody to tell; the state remembers
    }
    GuardedTicket(const GuardedTicket&) = delete;
    GuardedTicket& operator=(const GuardedTicket&) = delete;

    Result<bool> test() override {
        const std::lock_guard lock(mutex_);
        const auto done = advance([](Ticket& run) { return run.test(); });
        if (Flights::of_this_thread()->has_others(*this)) Flights::of_this_thread()->advance_others(this);
        leave();
        return done;
    }
    Result<bool> wait_for(Index microseconds) override {
        using Clock = std::chrono::steady_clock;
        const std::lock_guard lock(mutex_);
        const auto until = Clock::now() + std::chrono::microseconds(microseconds);
        for (;;) {
            const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()).count();
            const auto done = advance_all(std::clamp<Index>(left, 0, microseconds));
            if (done && !*done && Clock::now() < until) continue;
            leave();
            return done;
        }
    }
    Result<void> wait() override {
        const std::lock_guard lock(mutex_);
        while (!over_) {
            if (Flights::of_this_thread()->has_others(*this)) {
                static_cast<void>(advance_all(slice));
            } else {
                static_cast<void>(advance([](Ticket& run) { return run.wait().map([] { return true; }); }));
            }
        }
        leave();
        return ended();
    }

private:
    Result<bool> advance_all(Index most) {
        const bool others = Flights::of_this_thread()->has_others(*this);
        const auto done = advance([&](Ticket& run) { return run.wait_for(others ? std::min(most, slice) : most); });
        if (others) Flights::of_this_thread()->advance_others(this);
        if (done && !*done) std::this_thread::yield();
        return done;
    }
    bool advance_if_free() override {
        const std::unique_lock lock(mutex_, std::try_to_lock);
        if (lock) static_cast<void>(advance([](Ticket& run) { return run.test(); }));
        if (lock && over_) listed_ = false;
        return lock && over_;
    }
    // A run that is over is nobody's to advance. Not from within advance_if_free, whose caller has the list.
    void leave() {
        if (over_ && std::exchange(listed_, false)) flights_->remove(*this);
    }
    template <class Look>
    Result<bool> advance(const Look& look) {
        while (!over_) {
            const auto done = current() ? look(*runs_[at_]) : Result<bool>(tl::unexpected(state_->first_error));
            if (!done) end(done.error());
            if (done && !*done) return false;
            next();
        }
        return ended().map([] { return true; });
    }
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
        const Error first = error;  // what is told may be the state's own
        state_->fail(first);
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
    std::shared_ptr<Flights> flights_;  // of the thread that started it
    std::mutex mutex_;
    std::size_t at_ = 0;
    bool listed_ = false;  // in the flights
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
    // The time of all pieces of an array together.
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
            if (!run && run.error().code == Code::unsupported && i == 0) {  // nothing was started
                for (const auto& prepared : buckets_->prepared) prepared->excuse(named("start failed", run.error()));
                return run;
            }
            if (!run) {
                state_->fail(run.error());
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

void Executor::RunState::fail(const Error& error) {
    failed = true;
    first_error = error;
    for (const auto& bucket : buckets) {
        if (const auto prepared = bucket.lock()) prepared->give_up(first_error);
    }
}

Error named(std::string_view call, const Error& error) {
    return {error.code, fmt::format("{}: {}", call, error.message)};
}

std::unique_ptr<Bound> guarded(BoundBuckets buckets, std::shared_ptr<Executor::RunState> state) {
    return std::make_unique<GuardedBound>(std::make_shared<const BoundBuckets>(std::move(buckets)), std::move(state));
}

}  // namespace reshard
