// The tool as a process.
#pragma once

#include <string>
#include <vector>

namespace reshard::test {

struct Ran {
    int code = -1;  ///< of the exit; -1 when a signal ended it
    std::string out;
};

/// Runs the tool with these arguments, `in` on its stdin. Its stderr is thrown away.
[[nodiscard]] Ran run_tool(const std::vector<std::string>& arguments, const std::string& in = {});

}  // namespace reshard::test
