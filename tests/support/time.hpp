// Bounds on time that also hold on a machine with other work.
#pragma once

#include <chrono>
#include <ctime>

namespace reshard::test {

/// Longest time until a rank reports a failure: far above what a busy machine needs, far below the default timeout of
/// five minutes, after which a test would take silence for an error.
inline constexpr auto soon = std::chrono::seconds(60);

/// CPU seconds of this process so far. Other processes do not change them.
inline double cpu_seconds() {
    timespec spent{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

}  // namespace reshard::test
