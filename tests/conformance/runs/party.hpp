// One rank of a schedule: it calls what is drawn for it, does wrong where it should, and holds every answer against
// what it may be.
#pragma once

#include <functional>
#include <memory>

#include "schedule.hpp"

namespace reshard::runs {

/// What came of a schedule on one rank.
struct Report {
    std::vector<std::string> wrong;  ///< one line for each broken promise
    Index right = 0;                 ///< runs with right data
    Index errors = 0;                ///< calls that said that something failed
    Index told = 0;                  ///< of those the ones on ranks that did nothing wrong
    Index named = 0;                 ///< of those the ones that name the rank that did
    double longest_call = 0;         ///< seconds
};

/// All ranks together.
void add(Report& sum, const Report& one);

/// Bounds on one call, in seconds.
struct Bounds {
    double call = 5;
    double with_timeout = 7;  ///< where the others' timeout is what ends it
};

/// Plays the part of `rank`. The backend is made by `make`, as the first call, and dropped as the last one. `enter` is
/// told of each call before it is made.
[[nodiscard]] Report play(const Schedule& schedule, Index rank,
                          const std::function<Result<std::unique_ptr<Backend>>()>& make,
                          const std::function<void(std::string)>& enter, const Bounds& bounds);

}  // namespace reshard::runs
