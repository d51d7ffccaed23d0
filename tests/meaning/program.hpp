// The tool as a process.
#pragma once

#include <string>
#include <vector>

namespace reshard::test {

struct Ran {
    int code = -1;  ///< exit code; -1 if a signal ended it
    std::string out;
};

/// Runs the tool with these arguments, and `in` on its stdin. Discards its stderr.
[[nodiscard]] Ran run_tool(const std::vector<std::string>& arguments, const std::string& in = {});

}  // namespace reshard::test
