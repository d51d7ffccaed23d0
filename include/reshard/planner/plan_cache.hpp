// Plans remembered, since a program that reshards in a loop asks the same questions again.
#pragma once

#include <memory>

#include "reshard/synthesize.hpp"

namespace reshard {

/// Answers of synthesize, found by what decides them: atoms, extents, sizes of axes, bytes of an element, options; not
/// the names of axes. Bounded: the question that was asked longest ago is forgotten first. Any number of threads may
/// ask.
class PlanCache {
public:
    /// Remembers at most `plans_max` plans.
    explicit PlanCache(std::size_t plans_max = 1024);
    ~PlanCache();
    PlanCache(const PlanCache&) = delete;
    PlanCache& operator=(const PlanCache&) = delete;

    /// As reshard::synthesize, and equal to it: a remembered plan is given the names of this question and judged again.
    /// Errors and questions with Options::explain are not remembered.
    [[nodiscard]] Result<Synthesis> synthesize(const Problem& problem, const Options& options = {});

    [[nodiscard]] std::size_t size() const;  ///< plans remembered now
    [[nodiscard]] Index hits() const;        ///< questions answered from memory so far

private:
    struct Memory;
    std::unique_ptr<Memory> memory_;
};

}  // namespace reshard
