// What came of all schedules of a program, and whether that is enough to have shown anything.
#pragma once

#include <array>
#include <map>

#include "party.hpp"

namespace reshard::runs {

/// What the command line asks for.
struct Request {
    std::uint64_t seed = 3220;  // so that every fault comes up, and few schedules take seconds
    int count = 500;
    bool one = false;      ///< the schedule of this seed alone, told in full
    bool usual = true;     ///< seed and count are the program's own: every fault comes up
    double slack = 1;      ///< by which the bounds on a call are wider
    int seconds_max = 30;  ///< of one schedule, before the job is ended
};

/// [--seed N] [--count N] [--schedule SEED] [--slack X] [--hang SECONDS]. In a long run 10^4 schedules from a seed that
/// `draw_seed` gives; under the sanitizers a quarter.
[[nodiscard]] Result<Request> read_arguments(std::span<char*> arguments,
                                             const std::function<std::uint64_t()>& draw_seed);
[[nodiscard]] Bounds bounds_of(const Request& asked);

class Tally {
public:
    /// Prints what is wrong, and with `repeat` and the seed the line that repeats it.
    void add(const Schedule& schedule, const Report& all_ranks, const std::string& repeat);
    /// Prints the sums. 0 when all promises were kept, and every fault was met and seen; else 1.
    [[nodiscard]] int finish(const Request& asked, const std::string& what) const;

private:
    struct OfFault {
        int schedules = 0;
        Index right = 0;
        Index errors = 0;
    };
    std::array<OfFault, fault_count> of_;
    std::map<Index, int> of_ranks_;
    int failed_ = 0;
    int in_all_ = 0;
    int side_by_side_ = 0;
    int in_other_orders_ = 0;
    double longest_call_ = 0;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace reshard::runs
