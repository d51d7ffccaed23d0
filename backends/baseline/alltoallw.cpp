#include "backends/baseline/alltoallw.hpp"

#include <fmt/format.h>

#include <sched.h>

#include <chrono>
#include <set>

#include "backends/baseline/regions_type.hpp"
#include "backends/mpi/base.hpp"
#include "backends/mpi/base/standing.hpp"
#include "backends/mpi/shm/signals.hpp"

namespace reshard::mpi {

namespace {

// One side of the call. Displacements are zero and in bytes of an int; offsets live inside the types, where they are 64
// bits.
struct Side {
    std::vector<int> counts;
    std::vector<int> displacements;
    std::vector<MPI_Datatype> types;
    std::vector<Datatype> owned;
};

Result<Side> make_side(const std::vector<Transfer>& transfers, const Slot& slot, Index element_bytes, Index ranks) {
    const auto size = static_cast<std::size_t>(ranks);
    std::vector<std::vector<Region>> regions(size);
    for (const Transfer& transfer : transfers) {
        if (count(transfer.box) == 0) continue;
        regions[static_cast<std::size_t>(transfer.peer)].push_back(region_of(slot, transfer.box, element_bytes));
    }
    Side side{std::vector<int>(size, 0), std::vector<int>(size, 0), std::vector<MPI_Datatype>(size, MPI_BYTE), {}};
    for (std::size_t peer = 0; peer < size; ++peer) {
        if (regions[peer].empty()) continue;
        auto type = regions_type(regions[peer]);
        if (!type) return tl::unexpected(type.error());
        side.counts[peer] = 1;
        side.types[peer] = type->get();
        side.owned.push_back(std::move(*type));
    }
    return side;
}

struct Call {
    Side send;
    Side receive;
};

// The own share goes through MPI like the rest: the schedule lists it as a receive only.
Result<Call> make_call(const RankPlan& plan, Index rank, Index ranks) {
    const RankStep& step = plan.steps.front();
    std::vector<Transfer> sends = step.schedule.sends;
    for (const Transfer& receive : step.schedule.receives) {
        if (receive.peer == rank) sends.push_back(receive);
    }
    auto send = make_side(sends, step.from, size_of(plan.dtype), ranks);
    if (!send) return tl::unexpected(send.error());
    auto receive = make_side(step.schedule.receives, step.to, size_of(plan.dtype), ranks);
    if (!receive) return tl::unexpected(receive.error());
    return Call{std::move(*send), std::move(*receive)};
}

Result<std::vector<Call>> make_calls(const std::vector<RankPlan>& plans, Index rank, Index ranks) {
    std::vector<Call> calls;
    for (const RankPlan& plan : plans) {
        const bool one_copy = plan.steps.size() == 1 && plan.steps.front().schedule.combine == Combine::copy &&
                              plan.steps.front().schedule.fills.empty() && plan.steps.front().schedule.scaled.empty();
        if (!one_copy) return fail(Code::unsupported, "the all-to-all-w baseline runs plans of one exchange only");
        auto call = make_call(plan, rank, ranks);
        if (!call) return tl::unexpected(call.error());
        calls.push_back(std::move(*call));
    }
    return calls;
}

class AlltoallwRun final : public Ticket {
public:
    AlltoallwRun(MPI_Comm communicator, const std::vector<Call>& calls, std::span<const Buffers> buffers,
                 std::vector<double>& seconds, Standing& standing, std::chrono::milliseconds timeout)
        : communicator_(communicator),
          calls_(calls),
          buffers_(buffers),
          seconds_(seconds),
          standing_(standing),
          timeout_(timeout) {
        begin();
    }
    ~AlltoallwRun() override {
        if (usable()) static_cast<void>(wait());
    }
    AlltoallwRun(const AlltoallwRun&) = delete;
    AlltoallwRun& operator=(const AlltoallwRun&) = delete;

    Result<bool> test() override {
        while (array_ < calls_.size()) {
            int done = 1;
            note(MPI_Test(&request_, &done, MPI_STATUS_IGNORE));
            if (done == 0 && !error_ && lasts()) return false;
            if (array_ < calls_.size()) next();
        }
        return ended().map([] { return true; });
    }
    Result<void> wait() override {
        for (;;) {
            const auto done = test();
            if (!done) return tl::unexpected(done.error());
            if (*done) return {};
            sched_yield();
        }
    }

private:
    // False if the running call takes too long, or if a peer is gone. Then the call is left to MPI, and nothing more is
    // called.
    bool lasts() {
        constexpr auto silence = std::chrono::milliseconds(20);
        const auto now = std::chrono::steady_clock::now();
        since_ += forgiven(now - looked_, timeout_);
        looked_ = now;
        if (now - asked_ < silence) return true;
        asked_ = now;
        auto why = standing_.trouble();
        if (!why && now - since_ > timeout_) why = fmt::format("no end within {}", in_words(timeout_));
        if (!why) return true;
        if (!error_) error_ = Error{Code::backend, fmt::format("array {}: MPI_Ialltoallw: {}", array_, *why)};
        array_ = calls_.size();
        return false;
    }
    void begin() {
        if (array_ == calls_.size()) {
            if (!error_) standing_.finish();
            return;
        }
        begun_at_ = std::chrono::steady_clock::now();
        since_ = looked_ = asked_ = begun_at_;
        const Side& send = calls_[array_].send;
        const Side& receive = calls_[array_].receive;
        note(MPI_Ialltoallw(buffers_[array_].source.data(), send.counts.data(), send.displacements.data(),
                            send.types.data(), buffers_[array_].target.data(), receive.counts.data(),
                            receive.displacements.data(), receive.types.data(), communicator_, &request_));
    }
    void next() {
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun_at_;
        seconds_[array_++] = taken.count();
        begin();
    }
    void note(int code) {
        if (code == MPI_SUCCESS || error_) return;
        error_ = Error{Code::backend, fmt::format("array {}: MPI_Ialltoallw: {}", array_, text_of(code))};
    }
    [[nodiscard]] Result<void> ended() const {
        if (error_) return tl::unexpected(*error_);
        return {};
    }

    MPI_Comm communicator_;
    const std::vector<Call>& calls_;
    std::span<const Buffers> buffers_;
    std::vector<double>& seconds_;
    std::size_t array_ = 0;
    MPI_Request request_ = MPI_REQUEST_NULL;
    Standing& standing_;
    std::chrono::milliseconds timeout_;
    std::chrono::steady_clock::time_point begun_at_;
    std::chrono::steady_clock::time_point since_;
    std::chrono::steady_clock::time_point looked_;
    std::chrono::steady_clock::time_point asked_;
    std::optional<Error> error_;
};

class AlltoallwBound final : public Bound {
public:
    AlltoallwBound(MPI_Comm communicator, const std::vector<Call>& calls, std::span<const Buffers> buffers,
                   Standing& standing, std::chrono::milliseconds timeout)
        : communicator_(communicator),
          calls_(calls),
          buffers_(buffers.begin(), buffers.end()),
          seconds_(calls.size()),
          standing_(standing),
          timeout_(timeout) {}
    Result<std::unique_ptr<Ticket>> start() override {
        standing_.start();
        if (auto trouble = standing_.trouble()) return fail(Code::backend, std::move(*trouble));
        return std::make_unique<AlltoallwRun>(communicator_, calls_, buffers_, seconds_, standing_, timeout_);
    }
    [[nodiscard]] std::vector<double> step_seconds() const override { return seconds_; }

private:
    MPI_Comm communicator_;
    const std::vector<Call>& calls_;
    std::vector<Buffers> buffers_;
    std::vector<double> seconds_;
    Standing& standing_;
    std::chrono::milliseconds timeout_;
};

class AlltoallwPrepared final : public Prepared {
public:
    AlltoallwPrepared(const Roll& roll, Communicator communicator, std::vector<Call> calls,
                      std::chrono::milliseconds timeout)
        : communicator_(std::move(communicator)), calls_(std::move(calls)), standing_(roll), timeout_(timeout) {
        std::set<int> peers;
        for (int rank = 0; rank < size_of_communicator(communicator_.get()); ++rank) peers.insert(rank);
        peers.erase(roll.rank());
        standing_.meet(std::move(peers));
    }
    ~AlltoallwPrepared() override { standing_.own(std::move(communicator_)); }
    AlltoallwPrepared(const AlltoallwPrepared&) = delete;
    AlltoallwPrepared& operator=(const AlltoallwPrepared&) = delete;
    [[nodiscard]] Index staging_bytes() const override { return 0; }
    Result<std::unique_ptr<Bound>> bind(std::span<const Buffers> buffers) override {
        return std::make_unique<AlltoallwBound>(communicator_.get(), calls_, buffers, standing_, timeout_);
    }
    void abandon(const Error& why) override { standing_.abandon(why); }
    void report_failure(const Error& why) override { standing_.report_failure(why); }

private:
    Communicator communicator_;
    std::vector<Call> calls_;
    Standing standing_;
    std::chrono::milliseconds timeout_;
};

class AlltoallwBackend final : public Base {
public:
    AlltoallwBackend(Communicator communicator, std::chrono::milliseconds timeout)
        : Base(std::move(communicator), false), timeout_(timeout) {}
    ~AlltoallwBackend() override { drop_kept(); }
    AlltoallwBackend(const AlltoallwBackend&) = delete;
    AlltoallwBackend& operator=(const AlltoallwBackend&) = delete;
    [[nodiscard]] std::string_view name() const override { return "alltoallw"; }

    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        if (auto met = meet_to_prepare(); !met) return tl::unexpected(met.error());
        auto own = duplicate(communicator());
        if (!own) return tl::unexpected(own.error());
        auto calls = make_calls(plans, rank(), size());
        const Result<void> made = calls.map([](const std::vector<Call>&) {});
        if (auto all = all_succeeded(own->get(), made, plans.size()); !all) return tl::unexpected(all.error());
        return std::make_unique<AlltoallwPrepared>(roll(), std::move(*own), std::move(*calls), timeout_);
    }

private:
    std::chrono::milliseconds timeout_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_alltoallw_backend(MPI_Comm communicator, std::chrono::milliseconds timeout) {
    auto own = borrow(communicator, {}, "make_alltoallw_backend", timeout);
    if (!own) return tl::unexpected(own.error());
    auto backend = std::make_unique<AlltoallwBackend>(std::move(*own), timeout);
    if (auto opened = backend->open(timeout); !opened) return tl::unexpected(opened.error());
    return backend;
}

}  // namespace reshard::mpi
