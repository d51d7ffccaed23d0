// A few threads do the same work on many numbers.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::files {

/// Calls work(number, worker) for 0 <= number < count, ascending, on at most `workers` threads. The calling thread is
/// one of them. Stops at the first error and returns it.
template <class Work>
[[nodiscard]] Result<void> for_each_number(Index count, Index workers, const Work& work) {
    std::atomic<Index> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::optional<Error> error;
    const auto run = [&](Index worker) {
        for (Index number = next++; number < count && !failed; number = next++) {
            Result<void> done = work(number, worker);
            if (done) continue;
            const std::lock_guard held(mutex);
            if (!error) error = std::move(done.error());
            failed = true;
        }
    };
    std::vector<std::thread> threads;
    for (Index worker = 1; worker < std::min(workers, count); ++worker) {
        try {
            threads.emplace_back(run, worker);
        } catch (const std::system_error&) {
            break;  // the threads that were started do the work
        }
    }
    run(0);
    for (std::thread& thread : threads) thread.join();
    if (error) return tl::unexpected(*std::move(error));
    return {};
}

}  // namespace reshard::files
