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
    GuardedTicket(Buckets buckets, std::vector<std::unique_ptr<Ticket>> started, State state, bool withheld)
        : buckets_(std::move(buckets)),
          runs_(std::move(started)),
          state_(std::move(state)),
          flights_(Flights::of_this_thread()),
          ready_(withheld ? 0 : buckets_->bounds.size()),
          offered_(withheld ? buckets_->bounds.size() : 0) {
        if (buckets_->bounds.empty()) {
            finish();
        } else {
            flights_->add(*this);
            listed_ = true;
        }
    }
    // A run that is dropped has nobody to tell; the state remembers.
    ~GuardedTicket() override {
        static_cast<void>(wait());
        const std::lock_guard lock(mutex_);
        if (!over_) end({Code::usage, fmt::format("the run was dropped before piece {} was offered", next_wanted())});
        leave();
    }
    GuardedTicket(const GuardedTicket&) = delete;
    GuardedTicket& operator=(const GuardedTicket&) = delete;

    Result<bool> test() override {
        const std::lock_guard lock(mutex_);
        return look_at_all();
    }
    Result<bool> wait_for(Index microseconds) override {
        using Clock = std::chrono::steady_clock;
        const std::lock_guard lock(mutex_);
        const auto until = Clock::now() + std::chrono::microseconds(microseconds);
        for (;;) {
            const auto left = std::chrono::duration_cast<std::chrono::microseconds>(until - Clock::now()).count();
            const auto done = advance_all(std::clamp<Index>(left, 0, microseconds));
            if (done && !*done && !wants_offer() && Clock::now() < until) continue;
            leave();
            return done;
        }
    }
    Result<void> wait() override {
        const std::lock_guard lock(mutex_);
        while (!over_) {
            if (wants_offer())
                return fail(Code::usage, fmt::format("wait: piece {} has not been offered", next_wanted()));
            if (sliced()) {
                static_cast<void>(advance_all(slice));
            } else {
                static_cast<void>(advance([](Ticket& run) { return run.wait().map([] { return true; }); }));
            }
        }
        leave();
        return ended();
    }
    Result<std::size_t> arrived() override {
        const std::lock_guard lock(mutex_);
        return look_at_all().map([&](bool) { return at_; });
    }
    Result<void> offer(std::size_t piece) override {
        const std::lock_guard lock(mutex_);
        if (offered_.empty()) return Ticket::offer(piece);
        if (piece >= offered_.size())
            return fail(Code::usage,
                        fmt::format("offer: there is no piece {}, the run has {}", piece, offered_.size()));
        const std::size_t place = buckets_->place_of.empty() ? piece : buckets_->place_of[piece];
        if (offered_[place] != 0)
            return fail(Code::usage, fmt::format("offer: piece {} has been offered before", piece));
        offered_[place] = 1;
        while (ready_ < offered_.size() && offered_[ready_] != 0) ++ready_;
        if (over_) return ended();
        set_out();
        leave();
        return over_ ? ended() : Result<void>();
    }

private:
    Result<bool> look_at_all() {
        const auto done = advance([](Ticket& run) { return run.test(); });
        if (Flights::of_this_thread()->has_others(*this)) Flights::of_this_thread()->advance_others(this);
        leave();
        return done;
    }
    Result<bool> advance_all(Index most) {
        const bool others = Flights::of_this_thread()->has_others(*this);
        const auto done = advance([&](Ticket& run) { return run.wait_for(sliced() ? std::min(most, slice) : most); });
        if (others) Flights::of_this_thread()->advance_others(this);
        if (done && !*done) std::this_thread::yield();
        return done;
    }
    // Where something else must be looked at too, nobody waits long for one.
    [[nodiscard]] bool sliced() const { return runs_.size() > at_ + 1 || Flights::of_this_thread()->has_others(*this); }
    // Nothing is on its way, and nothing may set out.
    [[nodiscard]] bool wants_offer() const { return !over_ && ready_ == at_; }
    [[nodiscard]] std::size_t next_wanted() const {
        const auto& places = buckets_->place_of;
        const auto piece = std::ranges::find(places, ready_);
        return piece == places.end() ? ready_ : static_cast<std::size_t>(piece - places.begin());
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
            set_out();
            if (over_) break;
            if (at_ == runs_.size()) return false;
            const auto done = look(*runs_[at_]);
            if (!done) end(done.error());
            if (done && !*done) {
                look_at_next();
                if (!over_) return false;
            }
            next();
        }
        return ended().map([] { return true; });
    }
    // What is offered and may be on its way sets out: buckets when those before them are done.
    void set_out() {
        const std::size_t until = std::min(ready_, at_ + buckets_->in_flight_max());
        while (!over_ && runs_.size() < until) {
            auto run = buckets_->bounds[runs_.size()]->start();
            if (run)
                runs_.push_back(std::move(*run));
            else
                end(run.error());
        }
    }
    // A piece that has set out behind the one that is waited for moves too.
    void look_at_next() {
        if (runs_.size() <= at_ + 1) return;
        const auto done = runs_[at_ + 1]->test();
        if (!done) end(done.error());
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
    std::vector<std::unique_ptr<Ticket>> runs_;  // of what has set out
    State state_;
    std::shared_ptr<Flights> flights_;  // of the thread that started it
    std::mutex mutex_;
    std::size_t at_ = 0;         // so many have arrived
    std::size_t ready_;          // so many have been offered, with all before them
    std::vector<char> offered_;  // in the order of travel; none where nothing is withheld
    bool listed_ = false;        // in the flights
    bool over_ = false;
    bool failed_ = false;
};

class GuardedBound final : public Bound {
public:
    GuardedBound(Buckets buckets, State state) : buckets_(std::move(buckets)), state_(std::move(state)) {}

    Result<std::unique_ptr<Ticket>> start() override {
        const std::size_t at_once = std::min(buckets_->in_flight_max(), buckets_->bounds.size());
        return guarded(at_once, [](Bound& bound) { return bound.start(); });
    }
    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        return guarded(buckets_->bounds.size(), [&](Bound& bound) { return bound.start_on(queue); });
    }
    Result<std::unique_ptr<Ticket>> start_withheld() override {
        return guarded(
            0, [](Bound& bound) { return bound.start(); }, true);
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
    Result<std::unique_ptr<Ticket>> guarded(std::size_t at_once, const Start& start, bool withheld = false) {
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
        return std::make_unique<GuardedTicket>(buckets_, std::move(started), state_, withheld);
    }

    Buckets buckets_;
    State state_;
};

}  // namespace

void Executor::RunState::fail(const Error& error) {
    failed = true;
    first_error = error;
    for (const auto& one : prepared) {
        if (const auto held = one.lock()) held->give_up(first_error);
    }
}

Error named(std::string_view call, const Error& error) {
    return {error.code, fmt::format("{}: {}", call, error.message)};
}

std::unique_ptr<Bound> guarded(BoundBuckets buckets, std::shared_ptr<Executor::RunState> state) {
    return std::make_unique<GuardedBound>(std::make_shared<const BoundBuckets>(std::move(buckets)), std::move(state));
}

}  // namespace reshard
