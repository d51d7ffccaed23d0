// The fuzzed functions, one per reader. Each must end and must not trip a sanitizer. A value that it accepts must
// survive being written and read again.
#pragma once

#include <span>
#include <string_view>

namespace reshard::fuzz {

struct Target {
    std::string_view name;  ///< names the program fuzz_<name> and its folder of seeds
    void (*run)(std::string_view bytes);
};

[[nodiscard]] std::span<const Target> targets();

}  // namespace reshard::fuzz
