#include "backends/mpi/base/polled.hpp"

#include <algorithm>
#include <thread>

#include "src/execute/flights.hpp"

namespace reshard::mpi {
namespace {

// Before a rank sleeps. A yield lasts a slice of the scheduler if another process wants the core. MPI may yield in each
// poll that finds nothing.
constexpr int polls_between_yields = 4;
constexpr Pace::Clock::duration yield_time_max = std::chrono::microseconds(200);
constexpr Pace::Clock::duration longest_sleep = std::chrono::microseconds(200);

Lookout*& last() {
    thread_local Lookout* one = nullptr;
    return one;
}

}  // namespace

void Pace::rest() {
    const auto& flights = Flights::of_this_thread();
    if (!flights->empty()) flights->advance_all();
    now_ = Clock::now();
    const auto waited = now_ - begun_;
    if (waited < patience_) return;
    is_long_ = waited >= patience_ + yield_time_max;
    if (is_long_) return std::this_thread::sleep_for(std::min(waited / 10, longest_sleep));
    if (++polls_ % polls_between_yields == 0) std::this_thread::yield();
}

Lookout::Lookout(std::function<Result<void>()> look) : look_(std::move(look)), before_(std::exchange(last(), this)) {}

Lookout::~Lookout() { last() = before_; }

Result<void> Lookout::look() { return last() == nullptr ? Result<void>() : last()->look_(); }

Result<void> finished(MPI_Request request, std::string_view call) {
    Pace pace;
    for (int done = 0;; pace.rest()) {
        RESHARD_CHECK(checked(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call));
        if (done != 0) return {};
        if (pace.is_long()) RESHARD_CHECK(Lookout::look());
    }
}

}  // namespace reshard::mpi
