#include "backends/mpi/base/polled.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "src/execute/flights.hpp"

namespace reshard::mpi {
namespace {

constexpr int yields = 100;  // before a rank sleeps

Lookout*& last() {
    thread_local Lookout* one = nullptr;
    return one;
}

}  // namespace

void Pace::rest() {
    const auto& flights = Flights::of_this_thread();
    if (!flights->empty()) flights->advance_all();
    if (++rests_ < yields) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(rests_ - yields + 1, 200)));
}

bool Pace::is_long() const { return rests_ >= yields; }

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
