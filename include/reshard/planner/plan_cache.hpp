// A cache of plans, for programs that reshard in a loop.
#pragma once

#include <memory>

#include "reshard/synthesize.hpp"

namespace reshard {

/// Caches results of synthesize. The key is everything that decides a plan: atoms, extents, sizes of axes, bytes of an
/// element, options; not the names of axes. The cache is bounded and drops the least recently used plan first. Any
/// number of threads may use it.
class PlanCache {
public:
    /// A cache of at most `plans_max` plans.
    explicit PlanCache(std::size_t plans_max = 1024);
    ~PlanCache();
    PlanCache(const PlanCache&) = delete;
    PlanCache& operator=(const PlanCache&) = delete;

    /// Returns what reshard::synthesize returns. A cached plan gets the names of this problem and is judged again.
    /// Errors are not cached; nor are problems with Options::explain.
    [[nodiscard]] Result<Synthesis> synthesize(const Problem& problem, const Options& options = {});

    [[nodiscard]] std::size_t size() const;  ///< plans in the cache now
    [[nodiscard]] Index hits() const;        ///< calls answered from the cache so far

private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
};

}  // namespace reshard
