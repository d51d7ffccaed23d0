#include "backends/mpi/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace reshard::mpi {

Run::Run(RunPlan plan) : state_(std::move(plan)) { advance(false); }

Run::~Run() {
    if (usable()) static_cast<void>(wait());
}

// Tests instead of MPI_Wait, which knows no end: looks a while, then gives up the processor between looks, and sleeps
// for a part of the time in which nothing has happened: what a link brings meanwhile, the system keeps. Where only
// ranks of the node are waited for, the board knows best from the first look on.
Result<void> Run::wait() {
    using std::chrono::steady_clock;
    constexpr int looks = 100;
    constexpr int looks_between_naps = 2;
    constexpr auto idle = std::chrono::microseconds(200);
    constexpr auto longest_nap = std::chrono::microseconds(200);
    auto since = steady_clock::now();
    Index events = state_.events();
    for (int look = 0;; ++look) {
        const auto done = advance(true);
        if (!done) return tl::unexpected(done.error());
        if (*done) return {};
        if (look < looks) continue;
        const auto now = steady_clock::now();
        if (events != state_.events()) since = now;
        events = state_.events();
        if (now - since >= state_.plan().patience) give_up();
        if (now - since < idle || state_.plan().never_naps) {
            sched_yield();
        } else if (look % looks_between_naps == 0) {
            std::this_thread::sleep_for(std::min<steady_clock::duration>((now - since) / 10, longest_nap));
        }
    }
}

void Run::give_up() {
    const auto waited = fmt::format("waited {} ms in vain", state_.plan().patience.count());
    sum_messages_.give_up(waited);
    streams_.give_up(waited);
    gathers_.give_up(waited);
    state_.note({"waiting for messages"}, waited);
    state_.end();
}

Result<bool> Run::advance(bool block) {
    while (!state_.over()) {
        if (!begun_) begin_wave();
        if (!finish_wave(block)) return false;
        end_wave();
    }
    if (state_.error()) return tl::unexpected(*state_.error());
    return true;
}

void Run::begin_wave() {
    begun_ = true;
    begun_at_ = std::chrono::steady_clock::now();
    const Wave& wave = state_.wave();
    for (const WireStep& step : wave.steps) {
        for (const auto& [where, fill] : step.fills) fill.run(state_.write(step.array, where));
        state_.copy(step.packs);
    }
    if (wave.node && !state_.error()) node_.emplace(*wave.node, state_.wave_buffers().node);
    next_sum_ = 0;
    begin_sum();
    streams_.begin();
    sum_messages_.begin();
    gathers_.restart(0);
    for (std::size_t i = 0; i < wave.steps.size(); ++i) {
        sum_messages_.begin_step(i);
        if (wave.steps[i].gather) begin_gather(i);
        state_.copy(wave.steps[i].copies);
    }
}

bool Run::finish_wave(bool block) {
    const bool summed = sum_messages_.advance();
    const bool streamed = streams_.advance();
    const bool gathered = gathers_.advance();
    // Only a rank that no message waits for may sleep on the board: asleep it makes none of them go on.
    const bool may_sleep = block && summed && streamed && gathered;
    if (!advance_node(may_sleep) || !advance_sums(may_sleep)) return false;
    if (!summed || !streamed || !gathered) return false;
    for (const WireStep& step : state_.wave().steps) {
        state_.copy(step.unpacks);
        for (const auto& [where, scale] : step.scales) scale.run(state_.write(step.array, where));
    }
    return true;
}

// The steps of a wave share its time by their bytes.
void Run::end_wave() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun_at_;
    double bytes = 0;
    for (const Wave::Timed& one : state_.wave().timed) bytes += one.bytes;
    for (const Wave::Timed& one : state_.wave().timed) {
        (*state_.plan().step_seconds)[one.ordinal] = bytes > 0 ? taken.count() * one.bytes / bytes : taken.count();
    }
    begun_ = false;
    state_.happened();
    state_.next_wave();
}

void Run::begin_gather(std::size_t number) {
    const WireStep& step = state_.wave().steps[number];
    const Gather& gather = *step.gather;
    gathers_.add({"gathering", Pending::collective, -1, number}, [&](MPI_Request* request) {
        return MPI_Iallgather(state_.read(step.array, gather.send.where) + gather.send.offset_bytes, 1,
                              gather.send.type.get(),
                              state_.write(step.array, gather.receive.where) + gather.receive.offset_bytes, 1,
                              gather.receive.type.get(), gather.communicator, request);
    });
}

void Run::begin_sum() {
    const Wave& wave = state_.wave();
    if (next_sum_ == wave.sums.size() || state_.error()) return;
    sum_.emplace(*wave.sums[next_sum_], state_.wave_buffers().sums[next_sum_]);
    ++next_sum_;
}

bool Run::advance_node(bool block) { return over_inside(node_, block); }

// One after another, in the same order on all ranks.
bool Run::advance_sums(bool block) {
    while (sum_) {
        if (!over_inside(sum_, block)) return false;
        begin_sum();
    }
    return true;
}

template <class Inside>
bool Run::over_inside(std::optional<Inside>& run, bool block) {
    if (!run) return true;
    const auto done = run->advance(block);
    if (done && !*done) return false;
    run.reset();
    state_.happened();
    if (done || state_.error()) return true;
    state_.fail(fmt::format("{}: among ranks {}, counted from 0: {}", state_.wave().steps.front().name,
                            fmt::join(state_.plan().nodes->members, ", "), done.error().message));
    return true;
}

}  // namespace reshard::mpi
