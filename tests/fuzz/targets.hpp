// What is fuzzed: one function per reader. Each must end, must not be caught by a sanitizer, and what it accepts must
// survive being written and read again.
#pragma once

#include <span>
#include <string_view>

namespace reshard::fuzz {

struct Target {
    std::string_view name;  ///< of the program fuzz_<name> and of its folder of seeds
    void (*run)(std::string_view bytes);
};

[[nodiscard]] std::span<const Target> targets();

}  // namespace reshard::fuzz
