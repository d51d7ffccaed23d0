// How long ranks wait for each other: what backends have in common.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard {

/// How long a rank that could not bind or start has to start a run before others give up on it.
inline constexpr std::chrono::seconds second_try{1};

/// The part of the time between two polls that does not count as waiting: callers do other work, and the system runs
/// other processes. A part always counts, so that a wait ends however seldom a rank polls.
[[nodiscard]] inline std::chrono::steady_clock::duration forgiven(std::chrono::steady_clock::duration between_polls,
                                                                  std::chrono::milliseconds timeout) {
    using Duration = std::chrono::steady_clock::duration;
    const auto counts = std::max<Duration>(std::chrono::seconds(1), timeout / 4);
    return std::max(between_polls - counts, Duration::zero());
}

/// "2 s" or "250 ms"
[[nodiscard]] inline std::string in_words(std::chrono::milliseconds time) {
    return time.count() % 1000 == 0 ? fmt::format("{} s", time.count() / 1000) : fmt::format("{} ms", time.count());
}

/// "rank 3" or "ranks 0, 3"
[[nodiscard]] inline std::string ranks_in_words(const std::vector<int>& ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace reshard
