#include "party.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>

#include "law.hpp"
#include "tiles.hpp"

namespace reshard::runs {
namespace {

using Clock = std::chrono::steady_clock;

// The load of the machine relative to this program's own ranks, at most 4. Calls may take that many times longer.
double share_of_others() {
    constexpr double own = 8;
    std::array<double, 1> load{};
    return getloadavg(load.data(), 1) == 1 ? std::clamp(load[0] / own, 1.0, 4.0) : 1.0;
}

class Party {
public:
    Party(const Schedule& schedule, Index rank, const std::function<void(std::string)>& enter, const Bounds& bounds)
        : schedule_(schedule), rank_(rank), enter_(enter), bounds_(bounds) {
        for (std::size_t i = 0; i < schedule.lists.size(); ++i) executors_.emplace_back(Tiles(schedule, i, rank));
    }

    Report play(const std::function<Result<std::unique_ptr<Backend>>()>& make) {
        auto made = timed("make the backend", make);
        if (!made) {
            wrong(fmt::format("no backend: {}", made.error().message));
            return std::move(report_);
        }
        backend_ = std::move(*made);
        const std::vector<Op>& ops = schedule_.ops[static_cast<std::size_t>(rank_)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (at_fault() && i == schedule_.faulty_op) {
                if (schedule_.fault == Fault::leaves) break;
                if (schedule_.fault == Fault::late) {
                    enter_(fmt::format("rank {} sleeps", rank_));
                    std::this_thread::sleep_for(schedule_.late_by);
                }
            }
            make_call(ops[i]);
        }
        for (std::size_t i = 0; i < executors_.size(); ++i) drop(i);
        for (Held& held : executors_) held.tiles.give_back();
        timed("drop the backend", [&] { backend_.reset(); });
        enter_(fmt::format("rank {} is done", rank_));
        return std::move(report_);
    }

private:
    // This rank's part of one executor.
    struct Held {
        explicit Held(Tiles own) : tiles(std::move(own)) {}
        std::optional<Executor> executor;
        std::unique_ptr<Bound> bound;
        std::unique_ptr<Ticket> ticket;
        Tiles tiles;
        bool failed = false;  // a run failed
        bool broken = false;  // this rank no longer calls it: something failed, or not to call it is the fault
    };

    void wrong(const std::string& what) { report_.wrong.push_back(fmt::format("rank {}: {}", rank_, what)); }
    [[nodiscard]] bool at_fault() const { return schedule_.fault != Fault::none && rank_ == schedule_.faulty_rank; }
    // True if this rank commits the fault here.
    [[nodiscard]] bool at_fault(Fault fault, const Op& op) const {
        return schedule_.fault == fault && rank_ == schedule_.faulty_rank && op.executor == schedule_.faulty_executor &&
               op.run == schedule_.faulty_run;
    }

    // Makes one call and times it.
    template <class Make>
    std::invoke_result_t<const Make&> timed(const std::string& what, const Make& make) {
        enter_(fmt::format("rank {} in {}", rank_, what));
        struct Watch {
            Party& party;
            const std::string& what;
            Clock::time_point begin = Clock::now();
            ~Watch() {
                const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
                party.report_.longest_call = std::max(party.report_.longest_call, seconds);
                const bool slow = needs_timeout(party.schedule_.fault);
                const double bound = slow ? party.bounds_.with_timeout : party.bounds_.call;
                if (seconds > bound && seconds > bound * share_of_others())
                    party.wrong(fmt::format("{} took {:.1f} s", what, seconds));
            }
        };
        const Watch watch{*this, what};
        return make();
    }

    // True if the call succeeded. An error breaks the executor.
    bool judge(const std::string& what, std::size_t executor, const std::optional<Error>& error, Verdict verdict) {
        if (error) enter_(fmt::format("rank {} after {}: {}", rank_, what, error->message));
        if (error) ++report_.errors;
        if (error && !at_fault()) {
            ++report_.told;
            const bool names = error->message.find(fmt::format("rank {}", schedule_.faulty_rank)) != std::string::npos;
            if (names) ++report_.named;
        }
        if (error && verdict == Verdict::right) wrong(fmt::format("{} failed: {}", what, error->message));
        if (!error && verdict == Verdict::error) wrong(fmt::format("{} did not fail", what));
        if (error) abandon(executor);
        return !error;
    }
    void abandon(std::size_t executor) {
        executors_[executor].broken = true;
        if (!schedule_.keeps_broken[static_cast<std::size_t>(rank_)]) drop(executor);
    }

    void make_call(const Op& op) {
        Held& held = executors_[op.executor];
        if (held.failed && op.call == Call::start && held.bound && !held.ticket) {
            const auto again = timed(describe(op) + " after a failure", [&] { return held.bound->start(); });
            if (again) wrong(fmt::format("{} after a failure did not fail", describe(op)));
        }
        if (op.call == Call::drop) return drop_in_time(op.executor);
        if (held.broken) return;
        switch (op.call) {
            case Call::prepare:
                return prepare(op);
            case Call::bind:
                return bind(op);
            case Call::start:
                return start(op);
            default:
                return wait(op);
        }
    }
    void prepare(const Op& op) {
        const List& list = schedule_.lists[op.executor];
        ListPlan plan = list_plan(list);
        MemoryPolicy memory{.donate = list.donate};
        // Runs as steps, or as the backend prefers.
        if (schedule_.seed % 2 == 0) plan = choose_executions(std::move(plan), backend_->capabilities(), memory);
        const bool here = at_fault() && op.executor == schedule_.faulty_executor;
        if (here) {
            if (schedule_.fault == Fault::rejected_plan) plan = rejected(plan);
            if (schedule_.fault == Fault::other_plan) plan = another(plan, schedule_.seed, schedule_.ranks);
            if (schedule_.fault == Fault::limit) memory.footprint_bytes_max = 0;
        }
        std::vector<Storages> storages;
        for (const conformance::Item& item : list.items) storages.push_back(storages_of(item, rank_));
        if (here && schedule_.fault == Fault::other_plan) storages.clear();
        auto made =
            timed(describe(op), [&] { return Executor::prepare(reshard::judge(plan, memory), *backend_, storages); });
        const Verdict verdict = of_prepare(schedule_, op.executor, rank_, backend_->name() != "local");
        const auto error = made ? std::nullopt : std::optional(made.error());
        if (judge(describe(op), op.executor, error, verdict)) executors_[op.executor].executor = std::move(*made);
        if (here && schedule_.fault == Fault::other_plan) executors_[op.executor].broken = true;  // others report it
    }

    void bind(const Op& op) {
        Held& held = executors_[op.executor];
        if (auto taken = timed("allocate", [&] { return held.tiles.take(*backend_, *held.executor); }); !taken)
            wrong(fmt::format("allocate failed: {}", taken.error().message));
        const std::vector<Buffers> buffers = held.tiles.buffers();
        const bool wrong_first = binds_too_small(schedule_.fault) && at_fault(schedule_.fault, op);
        if (wrong_first && !bind_too_small(op, buffers)) return;
        auto bound = timed(describe(op), [&] { return held.executor->bind(buffers); });
        const Verdict verdict = needs_timeout(schedule_.fault) ? Verdict::either : Verdict::right;
        if (judge(describe(op), op.executor, bound ? std::nullopt : std::optional(bound.error()), verdict))
            held.bound = std::move(*bound);
    }

    // False if no right bind follows.
    bool bind_too_small(const Op& op, std::vector<Buffers> buffers) {
        Held& held = executors_[op.executor];
        Buffers& some = *std::ranges::find_if(buffers, [](const Buffers& one) { return !one.target.empty(); });
        some.target = some.target.first(some.target.size() - 1);
        const auto bound = timed(describe(op), [&] { return held.executor->bind(buffers); });
        if (bound) wrong(fmt::format("{} did not fail with a buffer that is too small", describe(op)));
        ++report_.errors;
        if (schedule_.fault == Fault::right_after_small) return true;
        held.broken = true;
        if (schedule_.fault == Fault::small_buffer) drop(op.executor);
        return false;
    }

    void start(const Op& op) {
        Held& held = executors_[op.executor];
        if (at_fault(Fault::never_started, op) || at_fault(Fault::idle, op)) {
            held.broken = true;
            if (schedule_.fault == Fault::never_started) drop(op.executor);
            return;
        }
        held.tiles.fill(op.run);
        auto started = timed(describe(op), [&] { return held.bound->start(); });
        const auto error = started ? std::nullopt : std::optional(started.error());
        held.failed = error.has_value();
        if (!judge(describe(op), op.executor, error, of_run(schedule_, op.executor, op.run))) return;
        held.ticket = std::move(*started);
        if (at_fault(Fault::started_twice, op)) {
            const auto second = timed(describe(op) + " a second time", [&] { return held.bound->start(); });
            ++report_.errors;
            if (second) wrong(fmt::format("{} a second time did not fail", describe(op)));
        }
    }

    void wait(const Op& op) {
        Held& held = executors_[op.executor];
        const bool gives_up = at_fault(Fault::dropped_in_flight, op);
        const bool drops = gives_up || op.finish == Finish::drop_ticket;
        if (gives_up) {
            held.broken = true;
            timed("drop in flight", [&] { held.executor.reset(), held.bound.reset(); });
        }
        const auto done = timed(describe(op), [&]() -> Result<void> {
            if (drops) return held.ticket.reset(), Result<void>();
            if (op.finish == Finish::poll) return poll(*held.ticket, false);
            if (op.finish == Finish::poll_all) return poll(*held.ticket, true);
            return held.ticket->wait();
        });
        if (!done) {
            held.ticket.reset();
            held.failed = true;
        }
        const Verdict verdict = of_run(schedule_, op.executor, op.run);
        if (!judge(describe(op), op.executor, done ? std::nullopt : std::optional(done.error()), verdict)) return;
        held.ticket.reset();
        if (drops && verdict != Verdict::right) return;  // no rank knows whether it succeeded
        compare(op);
    }

    // Polls until this run is done, and polls all others too if `others`.
    Result<void> poll(Ticket& ticket, bool others) {
        constexpr int eager = 100;
        for (int look = 0;; ++look) {
            const auto done = ticket.test();
            if (!done) return tl::unexpected(done.error());
            if (*done) return {};
            for (Held& held : executors_) {
                if (others && held.ticket && held.ticket.get() != &ticket) static_cast<void>(held.ticket->test());
            }
            if (look < eager)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    void compare(const Op& op) {
        Held& held = executors_[op.executor];
        const std::string text = held.tiles.wrong();
        if (!text.empty()) wrong(fmt::format("{}: wrong data: {}", describe(op), text));
        if (text.empty()) ++report_.right;
    }

    // Drops the executor before or after the last wait, as drawn. Memory may outlive the run that was bound to it.
    void drop_in_time(std::size_t executor) {
        Held& held = executors_[executor];
        if (!held.ticket) return drop(executor);
        timed(fmt::format("drop executor {} in flight", executor), [&] { held.executor.reset(), held.bound.reset(); });
    }
    void drop(std::size_t executor) {
        Held& held = executors_[executor];
        if (!held.executor && !held.bound && !held.ticket) return;
        timed(fmt::format("drop executor {}", executor), [&] {
            held.ticket.reset();
            held.bound.reset();
            held.executor.reset();
        });
        if (mixed(schedule_, 7 + executor) % 2 == 0) held.tiles.give_back();
    }

    const Schedule& schedule_;
    Index rank_;
    const std::function<void(std::string)>& enter_;
    Bounds bounds_;
    std::unique_ptr<Backend> backend_;
    std::vector<Held> executors_;
    Report report_;
};

}  // namespace

void add(Report& sum, const Report& one) {
    sum.wrong.insert(sum.wrong.end(), one.wrong.begin(), one.wrong.end());
    sum.right += one.right;
    sum.errors += one.errors;
    sum.told += one.told;
    sum.named += one.named;
    sum.longest_call = std::max(sum.longest_call, one.longest_call);
}

Report play(const Schedule& schedule, Index rank, const std::function<Result<std::unique_ptr<Backend>>()>& make,
            const std::function<void(std::string)>& enter, const Bounds& bounds) {
    return Party(schedule, rank, enter, bounds).play(make);
}

}  // namespace reshard::runs
