// One rank of a schedule. It makes the calls that are drawn for it, commits its fault, and compares every answer with
// the allowed ones.
#pragma once

#include <functional>
#include <memory>

#include "schedule.hpp"

namespace reshard::runs {

/// The result of a schedule on one rank.
struct Report {
    std::vector<std::string> wrong;  ///< one line for each broken promise
    Index right = 0;                 ///< runs with right data
    Index errors = 0;                ///< calls that returned an error
    Index told = 0;                  ///< errors on ranks without a fault
    Index named = 0;                 ///< errors on ranks without a fault that name the faulty rank
    double longest_call = 0;         ///< seconds
};

/// Adds the reports of all ranks.
void add(Report& sum, const Report& one);

/// Limits on one call, in seconds.
struct Bounds {
    double call = 5;
    double with_timeout = 7;  ///< if the timeout of the other ranks ends it
};

/// Plays the part of `rank`. The first call makes the backend with `make`; the last call drops it. Reports each call to
/// `enter` before it is made.
[[nodiscard]] Report play(const Schedule& schedule, Index rank,
                          const std::function<Result<std::unique_ptr<Backend>>()>& make,
                          const std::function<void(std::string)>& enter, const Bounds& bounds);

}  // namespace reshard::runs
