// What the operating system says of this process's memory.
#pragma once

#include <string>

#include "reshard/planner/integer.hpp"

namespace reshard::cli {

/// Growth of the resident set since this was made, at its highest. The kernel's high-water mark is reset at the start
/// where that is permitted; where not, growth is what the mark rose, and `exact()` says so. Shared memory counts in
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

/// Tells apart the machines of a run.
[[nodiscard]] std::string machine_name();

}  // namespace reshard::cli
