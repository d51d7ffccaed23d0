// Cores pass memory on in lines. Two that write to one line wait for each other.
#pragma once

#include <cstdint>

namespace reshard {

inline constexpr std::int64_t line_bytes = 64;

}  // namespace reshard
