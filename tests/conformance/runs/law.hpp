// The promises of a schedule, given the fault of one rank.
#pragma once

#include "schedule.hpp"

namespace reshard::runs {

/// The allowed results of a call.
enum class Verdict { right, either, error };

/// The verdict on the prepare of an executor. `collective`: all ranks meet there.
[[nodiscard]] Verdict of_prepare(const Schedule& schedule, std::size_t executor, Index rank, bool collective);
/// The verdict on a run from its start on, if all calls before were right.
[[nodiscard]] Verdict of_run(const Schedule& schedule, std::size_t executor, int run);

}  // namespace reshard::runs
