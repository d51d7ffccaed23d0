// The operating system's numbers for this process's memory.
#pragma once

#include <string>

#include "reshard/planner/integer.hpp"

namespace reshard::cli {

/// The largest growth of the resident set since this was made. The constructor resets the kernel's high-water mark, if
/// that is permitted. Otherwise growth is the rise of the mark, and `exact()` returns false. Shared memory counts in
/// every process that touched it.
class ResidentGrowth {
public:
    ResidentGrowth();
    [[nodiscard]] Index bytes() const;
    [[nodiscard]] bool exact() const { return reset_; }

private:
    bool reset_;
    Index begin_;
};

/// Returns a name that differs between the machines of a run.
[[nodiscard]] std::string machine_name();

}  // namespace reshard::cli
