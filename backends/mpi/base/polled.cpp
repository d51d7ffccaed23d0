#include "backends/mpi/base/polled.hpp"

#include <algorithm>
#include <thread>

#include "src/execute/flights.hpp"

namespace reshard::mpi {
namespace {

// Before a rank sleeps. A yield lasts a slice of the scheduler if another process wants the core.
constexpr int yields_max = 100;
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
    const auto waited = Clock::now() - begun_;
    is_long_ = is_long_ || waited >= yield_time_max || ++yields_ >= yields_max;
    if (!is_long_) return std::this_thread::yield();
    std::this_thread::sleep_for(std::min(waited / 10, longest_sleep));
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
