// The report of a run: right or wrong, predicted beside measured.
#pragma once

#include <string>
#include <vector>

#include "tool/data/verify.hpp"
#include "tool/ranks/session.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

struct RunReport {
    std::string backend;
    Index ranks = 0;
    bool one_process = false;
    double seconds = 0;                ///< from the barrier before to the slowest rank's end
    Index target_bytes = 0;            ///< over all ranks
    std::vector<double> step_seconds;  ///< a step of the plan, slowest rank; negative when it is not run by itself
    MemoryTaken memory;
    Verified verified;
    std::string transport;  ///< how bytes moved, of rank 0; empty where there is nothing to say
};

[[nodiscard]] std::string run_text(const Request& asked, const Synthesis& made, const RunReport& report);
[[nodiscard]] Json run_json(const Request& asked, const Synthesis& made, const RunReport& report);

/// Its fields, in bytes, as `run` and `bench` have them.
void add_memory(Json& json, const MemoryTaken& memory);

/// Measured times of the steps that a rank ran, beside the steps of the plan: lowering turns slices into views, which
/// take no time of their own (negative).
[[nodiscard]] std::vector<double> seconds_of_plan(const Plan& plan, const RankPlan& ran,
                                                  const std::vector<double>& seconds);

}  // namespace reshard::cli
