// The surroundings of the tool: which rank prints, the width of a line, whether colour and progress are wanted.
#pragma once

#include <chrono>
#include <string_view>

#include "report/page.hpp"
#include "reshard/planner/integer.hpp"

namespace reshard::cli {

/// True in the one process that prints: rank 0 under an MPI launcher, every process otherwise.
[[nodiscard]] bool speaks();

/// Ranks that an MPI launcher started, 0 when none did.
[[nodiscard]] Index launched_ranks();

/// As stdout is: no colour when it is no terminal or NO_COLOR is set.
[[nodiscard]] Page page();

/// Writes an answer to stdout, on the rank that speaks only. Returns exit_ok.
int answer(std::string_view text);

/// True when every answer so far has left the process; else errno of the first that could not.
[[nodiscard]] bool heard();
[[nodiscard]] int why_not_heard();

/// One line of progress on stderr, when that is a terminal and the work has taken more than a second.
class Progress {
public:
    explicit Progress(bool shown);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    void at(std::string_view phase, Index done, Index all);

private:
    using Clock = std::chrono::steady_clock;
    bool shown_;
    bool dirty_ = false;
    Clock::time_point next_;
};

}  // namespace reshard::cli
