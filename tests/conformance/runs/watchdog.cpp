#include "watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace reshard::runs {

Watchdog::Watchdog(std::chrono::seconds limit, std::size_t ranks)
    : limit_(limit), calls_(ranks), entered_(ranks), thread_([this] { watch(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(mutex_);
        over_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Watchdog::begin(std::string schedule) {
    const std::lock_guard lock(mutex_);
    schedule_ = std::move(schedule);
    std::ranges::fill(calls_, std::string());
    begun_ = Clock::now();
}

void Watchdog::enter(std::size_t rank, std::string call) {
    const std::lock_guard lock(mutex_);
    calls_[rank] = std::move(call);
    entered_[rank] = Clock::now();
}

void Watchdog::end() {
    const std::lock_guard lock(mutex_);
    schedule_.clear();
}

void Watchdog::watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
        changed_.wait_for(lock, std::chrono::milliseconds(200));
        if (!schedule_.empty() && Clock::now() - begun_ > limit_) fire();
    }
}

// The watchdogs of other processes get two seconds, because the first process that exits ends all.
void Watchdog::fire() {
    for (std::size_t rank = 0; rank < calls_.size(); ++rank) {
        if (calls_[rank].empty()) continue;
        const std::chrono::duration<double> in_call = Clock::now() - entered_[rank];
        fmt::print("{:.1f} s in: {}\n", in_call.count(), calls_[rank]);
    }
    fmt::print("the schedule takes more than {} s: {}\n", limit_.count(), schedule_);
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    std::_Exit(3);
}

}  // namespace reshard::runs
