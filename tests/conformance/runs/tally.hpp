// The results of all schedules of a program, and whether they have shown enough.
#pragma once

#include <array>
#include <map>

#include "party.hpp"

namespace reshard::runs {

/// The arguments of the command line.
struct Request {
    std::uint64_t seed = 3220;  // shows every fault, and few of its schedules take seconds
    int count = 300;
    bool one = false;      ///< run only the schedule of this seed, with full output
    bool usual = true;     ///< seed and count are the defaults, which show every fault
    double slack = 1;      ///< factor on the limits of a call
    int seconds_max = 30;  ///< a longer schedule ends the job
};

/// Reads [--seed N] [--count N] [--schedule SEED] [--slack X] [--hang SECONDS]. A long run has 10^4 schedules from the
/// seed of `draw_seed`; a run under the sanitizers has fewer.
[[nodiscard]] Result<Request> read_arguments(std::span<char*> arguments,
                                             const std::function<std::uint64_t()>& draw_seed);
[[nodiscard]] Bounds bounds_of(const Request& asked);

class Tally {
public:
    /// Prints the faults, with the line that repeats them (`repeat` and the seed).
    void add(const Schedule& schedule, const Report& all_ranks, const std::string& repeat);
    /// Prints the sums. Returns 0 if all promises were kept and every fault occurred and was reported; otherwise 1.
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
