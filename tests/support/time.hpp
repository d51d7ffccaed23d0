// Time limits that also hold on a busy machine.
#pragma once

#include <chrono>
#include <ctime>

namespace reshard::test {

/// The longest time until a rank reports a failure. A busy machine needs far less. The default timeout of five minutes
/// is far longer, so a test does not mistake it for a report.
inline constexpr auto soon = std::chrono::seconds(60);

/// CPU seconds of this process so far, which other processes do not change.
inline double cpu_seconds() {
    timespec spent{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

}  // namespace reshard::test
