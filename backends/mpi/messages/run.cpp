#include "backends/mpi/messages/run.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <thread>

namespace reshard::mpi {
namespace {

constexpr auto silence = std::chrono::milliseconds(20);  // then a rank asks whether its peers are there

}  // namespace

Run::Run(RunPlan plan) : state_(std::move(plan)) { static_cast<void>(advance(only_poll)); }

// After a failure elsewhere, inside the node or in another bucket, peers may come to this run only after this rank has
// gone on. So this does not wait for the rest.
Run::~Run() {
    if (!usable()) return;
    if (state_.over()) return;
    if (state_.plan().standing->failed())
        abandon("the run failed");
    else
        static_cast<void>(wait());
}

Result<bool> Run::test() {
    auto done = advance(only_poll);
    if (done && !*done && !ends_in_time()) done = advance(only_poll);
    return done;
}

// Tests instead of calling MPI_Wait, which knows no timeout. It polls for a while, then it yields the processor between
// polls. After that it sleeps for a fraction of the time since the last event; the system keeps the messages that
// arrive meanwhile. If only ranks of the node are missing, the signals wait for them from the first poll on.
Result<bool> Run::wait_for(Index microseconds) {
    const Slice most(microseconds);
    constexpr int polls = 100;
    constexpr int polls_between_sleeps = 2;
    constexpr auto idle = std::chrono::microseconds(200);
    constexpr Clock::duration longest_sleep = std::chrono::microseconds(200);
    const Clock::duration patience = state_.plan().nodes->patience();
    const auto begin = Clock::now();
    for (int poll = 0;; ++poll) {
        const auto done = advance(most);
        if (!done || *done) return done;
        if (poll < polls && most > only_poll) continue;
        if (!ends_in_time()) continue;
        if (polled_ - begin >= most) return false;
        const auto quiet = polled_ - since_;
        if (quiet < patience) continue;
        if (quiet < idle) {
            sched_yield();
        } else if (poll % polls_between_sleeps == 0) {
            std::this_thread::sleep_for(std::min(quiet / 10, longest_sleep));
        }
    }
}

// False if the run was given up: nothing came for too long, or a message that it waits for will not come.
bool Run::ends_in_time() {
    const auto timeout = state_.plan().timeout;
    const auto now = Clock::now();
    since_ = events_ != state_.events() ? now : since_ + forgiven(now - polled_, timeout);
    events_ = state_.events();
    polled_ = now;
    if (now - since_ < silence || now - asked_ < silence) return true;
    asked_ = now;
    const std::set<int> peers = awaited();
    if (peers.empty()) return true;  // only ranks of the node, which the signals watch
    const Standing& standing = *state_.plan().standing;
    if (now - since_ >= timeout / 2 && !std::exchange(said_waiting_, true)) standing.say_waiting();
    auto why = standing.trouble(peers);
    if (!why && now - since_ >= timeout)
        why = fmt::format("{} did not take part in the run within {}", standing.missing(peers), in_words(timeout));
    if (!why) return true;
    state_.fail(fmt::format("{}: {}", state_.stage().steps.front().name, *why));
    abandon(*why);
    return false;
}

bool Run::has_sent() const {
    if (!first_stage_ || state_.over()) return true;
    return begun_ && channels_.has_sent() && sum_messages_.has_sent() && reductions_.has_sent();
}

// The answers that end this rank's own messages queue behind the data that flows to it, so they come later. A stage
// that adds up is complete only at its end.
bool Run::has_arrived() const {
    if (state_.error() || state_.over()) return !state_.error();
    const Stage& stage = state_.stage();
    const auto copies = [](const MessageStep& step) {
        return step.landings.empty() && !step.reduction && step.scales.empty();
    };
    return begun_ && &stage == &state_.plan().stages->back() && stage.sums.empty() && !node_ &&
           std::ranges::all_of(stage.steps, copies) && channels_.has_received();
}

std::set<int> Run::awaited() const {
    std::set<int> peers;
    channels_.add_peers(peers);
    sum_messages_.add_peers(peers);
    reductions_.add_peers(peers);
    peers.erase(static_cast<int>(rank_of(state_.plan().communicator)));
    return peers;
}

void Run::abandon(std::string_view why) {
    GivenUp run{why};
    channels_.abandon(run);
    sum_messages_.abandon(run);
    reductions_.abandon(run);
    state_.note({"waiting for messages"}, why);
    run.settle(*state_.plan().standing);
    state_.end();
}

Result<bool> Run::advance(Slice most) {
    while (!state_.over()) {
        if (!begun_) begin_stage();
        if (!finish_stage(most)) return false;
        end_stage();
        if (state_.error()) state_.end();
    }
    if (state_.error()) return tl::unexpected(*state_.error());
    return true;
}

void Run::begin_stage() {
    begun_ = true;
    begun_at_ = std::chrono::steady_clock::now();
    const Stage& stage = state_.stage();
    for (const MessageStep& step : stage.steps) {
        for (const auto& [where, fill] : step.fills) fill.run(state_.write(step.array, where));
    }
    if (stage.node && !state_.error()) node_.emplace(*stage.node, *state_.stage_buffers().node);
    next_sum_ = 0;
    begin_sum();
    channels_.begin();
    sum_messages_.begin();
    reductions_.begin();
    for (const MessageStep& step : stage.steps) state_.copy(step.copies);
}

bool Run::finish_stage(Slice most) {
    const bool summed = sum_messages_.advance();
    const bool flowed = channels_.advance();
    const bool reduced = reductions_.advance();
    // A rank may sleep on the signals only if no message waits for it: a rank that sleeps advances no message.
    const Slice slice = summed && flowed && reduced ? most : only_poll;
    if (!advance_node(slice) || !advance_sums(slice)) return false;
    if (!summed || !flowed || !reduced) return false;
    for (const MessageStep& step : state_.stage().steps) {
        for (const auto& [where, scale] : step.scales) scale.run(state_.write(step.array, where));
    }
    return true;
}

// Divides the time of a stage among its steps by their bytes.
void Run::end_stage() {
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun_at_;
    double bytes = 0;
    for (const Stage::Timed& one : state_.stage().timed) bytes += one.bytes;
    for (const Stage::Timed& one : state_.stage().timed) {
        (*state_.plan().step_seconds)[one.ordinal] = bytes > 0 ? taken.count() * one.bytes / bytes : taken.count();
    }
    begun_ = false;
    first_stage_ = false;
    state_.happened();
    state_.next_stage();
}

void Run::begin_sum() {
    const Stage& stage = state_.stage();
    if (next_sum_ == stage.sums.size() || state_.error()) return;
    sum_.emplace(*stage.sums[next_sum_], state_.stage_buffers().sums[next_sum_]);
    ++next_sum_;
}

bool Run::advance_node(Slice most) { return over_inside(node_, most); }

// Runs one sum after another, in the same order on all ranks.
bool Run::advance_sums(Slice most) {
    while (sum_) {
        if (!over_inside(sum_, most)) return false;
        begin_sum();
    }
    return true;
}

template <class Inside>
bool Run::over_inside(std::optional<Inside>& run, Slice most) {
    if (!run) return true;
    const auto done = run->advance(most);
    if (done && !*done) return false;
    run.reset();
    state_.happened();
    if (done || state_.error()) return true;
    state_.fail(fmt::format("{}: {}", state_.stage().steps.front().name, done.error().message));
    return true;
}

}  // namespace reshard::mpi
