// Ends a process if a schedule takes too long, and prints the current call of each rank. A hang becomes a failure with
// a name.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace reshard::runs {

class Watchdog {
public:
    Watchdog(std::chrono::seconds limit, std::size_t ranks);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    void begin(std::string schedule);
    void enter(std::size_t rank, std::string call);  ///< any thread may call it
    void end();

private:
    using Clock = std::chrono::steady_clock;
    void watch();
    [[noreturn]] void fire();

    std::chrono::seconds limit_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> calls_;  // the current call of each rank
    std::vector<Clock::time_point> entered_;
    std::string schedule_;
    Clock::time_point begun_;
    bool over_ = false;
    std::thread thread_;
};

}  // namespace reshard::runs
