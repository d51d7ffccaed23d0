// What a schedule promises, given what one rank does wrong.
#pragma once

#include "schedule.hpp"

namespace reshard::runs {

/// What may come of a call.
enum class Verdict { right, either, error };

/// Of the prepare of an executor. `collective`: all ranks meet there.
[[nodiscard]] Verdict of_prepare(const Schedule& schedule, std::size_t executor, Index rank, bool collective);
/// Of a run from its start on, where all calls before were right.
[[nodiscard]] Verdict of_run(const Schedule& schedule, std::size_t executor, int run);

}  // namespace reshard::runs
