// The number of random cases of a property on a backend.
#pragma once

#include <string>

#include "support/property.hpp"

namespace reshard::conformance {

/// --cases=N. The default is for ranks in one process: 200 over their four numbers of ranks, and 10,000 in a long run.
[[nodiscard]] inline int case_count() {
    constexpr std::string_view option = "--cases=";
    for (const std::string& argument : testing::internal::GetArgvs())
        if (argument.starts_with(option)) return test::cases(std::stoi(argument.substr(option.size())));
    return test::long_run() ? 2500 : 50;
}

}  // namespace reshard::conformance
