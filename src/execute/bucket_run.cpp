#include "src/execute/bucket_run.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "src/base/interrupt.hpp"
#include "src/base/try.hpp"
#include "src/execute/flights.hpp"

namespace reshard {

namespace {

using State = std::shared_ptr<Executor::RunState>;
using Buckets = std::shared_ptr<const BoundBuckets>;  // a run keeps them: callers may drop them while it is in flight

// Between two looks at the other runs.
constexpr Index slice = 100;  // microseconds
// Between two questions whether a wait is interrupted.
constexpr Index longest = std::chrono::microseconds(Interrupt::interval).count();

// How a run was started.
struct Started {
    bool withheld = false;
    std::optional<void*> queue = {};  // none: where the backend likes
    const Agreed* agreed = nullptr;   // null: nothing is agreed
};

Result<std::unique_ptr<Ticket>> start_one(Bound& bound, const std::optional<void*>& queue) {
    return queue ? bound.start_on(*queue) : bound.start();
}

class GuardedTicket final : public Ticket, private Flight {
public:
    GuardedTicket(Buckets buckets, std::vector<std::unique_ptr<Ticket>> started, const Started& how)
        : queue_(how.queue),
          buckets_(std::move(buckets)),
          runs_(std::move(started)),
          state_(*buckets_->state),
          flights_(Flights::of_this_thread()),
          ready_(how.withheld ? 0 : buckets_->bounds.size()),
          set_out_(runs_.size()),
          offered_(how.withheld ? buckets_->bounds.size() : 0) {
        if (buckets_->bounds.empty()) {
            finish();
        } else {
            flights_->add(*this);
            listed_ = true;
        }
    }
    // A run that is dropped has nobody to tell; the state remembers.
    ~GuardedTicket() override {
        if (has_left_.load(std::memory_order_acquire) || is_over()) return;
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
    // An interrupt ends the run, so that peers do not wait for this rank. It is asked for while nothing is locked.
    Result<void> wait() override {
        for (bool interrupted = false;; interrupted = Interrupt::raised()) {
            const std::lock_guard lock(mutex_);
            if (!over_ && interrupted) end({Code::backend, Interrupt::words});
            if (!over_ && wants_offer())
                return fail(Code::usage, fmt::format("wait: piece {} has not been offered", next_wanted()));
            if (!over_) static_cast<void>(advance_all(longest));
            leave();
            if (over_) return ended();
        }
    }
    Result<std::size_t> arrived() override {
        const std::lock_guard lock(mutex_);
        return look_at_all().map([&](bool) { return complete(); });
    }
    Result<void> offer(std::size_t piece) override {
        const std::lock_guard lock(mutex_);
        RESHARD_CHECK(may_be_offered(piece));
        return set_out_with(piece);
    }
    Result<void> offer_on(std::size_t piece, void* queue) override {
        const std::lock_guard lock(mutex_);
        RESHARD_CHECK(may_be_offered(piece));
        RESHARD_CHECK(bound_of(piece).wait_for_queue(queue));
        return set_out_with(piece);
    }
    Result<void*> event(std::size_t piece) override {
        const std::lock_guard lock(mutex_);
        if (failed_) return tl::unexpected(state_.first_error);
        if (piece >= buckets_->bounds.size()) return no_piece("event", piece);
        if (!buckets_->queued()) return fail(Code::unsupported, "this backend has no queues");
        if (place_of(piece) >= set_out_)
            return fail(Code::usage, fmt::format("event: piece {} has not set out, which waits for offers", piece));
        return bound_of(piece).event();
    }

private:
    [[nodiscard]] tl::unexpected<Error> no_piece(std::string_view call, std::size_t piece) const {
        return fail(Code::usage,
                    fmt::format("{}: there is no piece {}, the run has {}", call, piece, buckets_->bounds.size()));
    }
    [[nodiscard]] bool is_over() {
        const std::lock_guard lock(mutex_);
        if (over_) leave();
        return over_;
    }
    [[nodiscard]] std::size_t place_of(std::size_t piece) const {
        return buckets_->place_of.empty() ? piece : buckets_->place_of[piece];
    }
    [[nodiscard]] Bound& bound_of(std::size_t piece) const { return *buckets_->bounds[place_of(piece)]; }
    Result<void> may_be_offered(std::size_t piece) {
        if (offered_.empty()) return Ticket::offer(piece);
        if (piece >= offered_.size()) return no_piece("offer", piece);
        if (offered_[place_of(piece)] == 0) return {};
        return fail(Code::usage, fmt::format("offer: piece {} has been offered before", piece));
    }
    Result<void> set_out_with(std::size_t piece) {
        offered_[place_of(piece)] = 1;
        while (ready_ < offered_.size() && offered_[ready_] != 0) ++ready_;
        if (over_) return ended();
        set_out();
        leave();
        return over_ ? ended() : Result<void>();
    }
    // The pieces whose targets are complete. Those at and behind at_ still send.
    [[nodiscard]] std::size_t complete() const {
        std::size_t place = at_;
        while (place < runs_.size() && runs_[place]->has_arrived()) ++place;
        return place;
    }
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
    // With something else to look at, waits for each run only briefly.
    [[nodiscard]] bool sliced() const {
        const bool next_may_set_out = std::min(ready_, at_ + buckets_->in_flight_max()) > at_ + 1;
        return next_may_set_out || Flights::of_this_thread()->has_others(*this);
    }
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
        if (!over_) return;
        if (std::exchange(listed_, false)) flights_->remove(*this);
        has_left_.store(true, std::memory_order_release);
    }
    template <class Look>
    Result<bool> advance(const Look& look) {
        while (!over_) {
            if (state_.failed) {  // the executor was abandoned
                failed_ = true;
                finish();
                break;
            }
            set_out();
            if (over_) break;
            if (at_ == runs_.size()) return false;
            const auto done = look(*runs_[at_]);
            if (!done) end(done.error());
            if (done && !*done) {
                set_out();
                look_at_next();
                if (!over_) return false;
            }
            next();
        }
        return ended().map([] { return true; });
    }
    // Starts everything that is offered and may be on its way. A bucket starts when those before it are done. A piece
    // starts when the piece before it has been sent.
    void set_out() {
        const std::size_t until = std::min(ready_, at_ + buckets_->in_flight_max());
        while (!over_ && runs_.size() < until && !last_sends()) {
            auto run = start_one(*buckets_->bounds[runs_.size()], queue_);
            if (run) {
                runs_.push_back(std::move(*run));
                set_out_ = runs_.size();
            } else {
                end(run.error());
            }
        }
    }
    [[nodiscard]] bool last_sends() const { return !queue_ && runs_.size() > at_ && !runs_.back()->has_sent(); }
    // A piece that has set out behind the one that is waited for moves too.
    void look_at_next() {
        if (runs_.size() <= at_ + 1) return;
        const auto done = runs_[at_ + 1]->test();
        if (!done) end(done.error());
    }
    void end(const Error& error) {
        failed_ = true;
        const Error first = error;  // what is told may be the state's own
        state_.fail(first);
        finish();
    }
    void next() {
        if (!over_ && ++at_ == buckets_->bounds.size()) finish();
    }
    void finish() {
        over_ = true;
        runs_.clear();
        state_.in_flight = false;
    }
    [[nodiscard]] Result<void> ended() const {
        if (failed_) return tl::unexpected(state_.first_error);
        return {};
    }

    std::optional<void*> queue_;
    Buckets buckets_;
    std::vector<std::unique_ptr<Ticket>> runs_;  // that have started; none once it is over
    Executor::RunState& state_;
    std::shared_ptr<Flights> flights_;  // of the thread that started it
    std::mutex mutex_;
    std::size_t at_ = 0;                  // so many are over
    std::size_t ready_;                   // so many have been offered, with all before them
    std::size_t set_out_;                 // so many have set out
    std::vector<char> offered_;           // in the order of travel; none where nothing is withheld
    bool listed_ = false;                 // in the flights
    std::atomic<bool> has_left_ = false;  // it is over, and nobody else uses it
    bool over_ = false;
    bool failed_ = false;
};

class GuardedBound final : public Bound {
public:
    explicit GuardedBound(Buckets buckets) : buckets_(std::move(buckets)), state_(*buckets_->state) {}

    Result<std::unique_ptr<Ticket>> start() override {
        const std::size_t at_once = buckets_->queued() ? buckets_->bounds.size() : 1;
        return guarded(std::min(at_once, buckets_->bounds.size()), {});
    }
    Result<std::unique_ptr<Ticket>> start_if(const Agreed& agreed) override {
        if (!buckets_->bounds.empty() && !buckets_->queued()) return guarded(1, {.agreed = &agreed});
        RESHARD_CHECK(agreed());
        return start();
    }
    Result<std::unique_ptr<Ticket>> start_on(void* queue) override {
        return guarded(buckets_->bounds.size(), {.withheld = false, .queue = queue});
    }
    Result<std::unique_ptr<Ticket>> start_withheld_on(void* queue) override {
        if (!buckets_->queued()) return fail(Code::unsupported, "this backend has no queues");
        return guarded(0, {.withheld = true, .queue = queue});
    }
    Result<std::unique_ptr<Ticket>> start_withheld() override { return guarded(0, {.withheld = true, .queue = {}}); }
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
    Result<std::unique_ptr<Ticket>> guarded(std::size_t at_once, const Started& how) {
        if (state_.failed) {
            return fail(Code::backend, fmt::format("an earlier run of this executor failed, prepare it anew: {}",
                                                   state_.first_error.message));
        }
        if (state_.in_flight) return fail(Code::mismatch, "another run of this executor is still in flight");
        std::vector<std::unique_ptr<Ticket>> started;
        for (std::size_t i = 0; i < at_once; ++i) {
            Bound& bound = *buckets_->bounds[i];
            auto run = how.agreed != nullptr ? bound.start_if(*how.agreed) : start_one(bound, how.queue);
            if (!run && how.agreed == nullptr && run.error().code == Code::unsupported &&
                i == 0) {  // nothing was started
                for (const auto& prepared : buckets_->prepared)
                    prepared->report_failure(named("start failed", run.error()));
                return run;
            }
            if (!run) {
                state_.fail(run.error());
                return run;
            }
            started.push_back(std::move(*run));
        }
        state_.in_flight = true;
        return std::make_unique<GuardedTicket>(buckets_, std::move(started), how);
    }

    Buckets buckets_;
    Executor::RunState& state_;
};

}  // namespace

void BoundBuckets::find_rebindable() {
    for (const auto& bound : bounds) {
        auto* const one = dynamic_cast<Rebindable*>(bound.get());
        if (one == nullptr) return rebindable.clear();
        rebindable.push_back(one);
    }
}

bool BoundBuckets::queued() const { return !bounds.empty() && bounds.front()->queued(); }

std::size_t BoundBuckets::in_flight_max() const {
    if (place_of.empty()) return 1;
    return queued() ? bounds.size() : 2;
}

void Executor::RunState::fail(const Error& error) {
    failed = true;
    first_error = error;
    for (const auto& one : prepared) {
        if (const auto held = one.lock()) held->abandon(first_error);
    }
}

bool Executor::RunState::moves_at_once(bool agrees) const {
    const auto can = [&](const AtOnce* one) { return one != nullptr && one->moves_at_once(agrees); };
    return !at_once.empty() && !failed && !in_flight && Flights::of_this_thread()->empty() &&
           std::ranges::all_of(at_once, can);
}

Result<void> Executor::RunState::move_at_once(const Buffers& buffers, const Agreed* agreed) {
    for (AtOnce* const one : at_once) {
        auto moved = one->move_at_once(buffers, std::exchange(agreed, nullptr));
        if (moved) continue;
        fail(moved.error());
        return moved;
    }
    return {};
}

Error named(std::string_view call, const Error& error) {
    return {error.code, fmt::format("{}: {}", call, error.message)};
}

std::unique_ptr<Bound> guarded(std::unique_ptr<BoundBuckets> buckets, const State& state) {
    buckets->state = state;
    return std::make_unique<GuardedBound>(Buckets(buckets.release(), [](BoundBuckets* used) {
        std::unique_ptr<BoundBuckets> held(used);
        const State last = std::move(held->state);
        if (!held->rebindable.empty()) last->spare.put(std::move(held));
    }));
}

}  // namespace reshard
