// Times and rates as people read them. Byte counts are the library's own (format_bytes).
#pragma once

#include <string>
#include <vector>

#include "reshard/planner/integer.hpp"

namespace reshard::cli {

[[nodiscard]] std::string format_seconds(double seconds);        ///< 0, 310 ns, 1.35 ms, 12.0 s
[[nodiscard]] std::string format_picoseconds(Index);             ///< the same of a saturating integer
[[nodiscard]] std::string format_rate(double bytes_per_second);  ///< 8.35 GB/s
[[nodiscard]] double median(std::vector<double> values);         ///< pre: not empty

}  // namespace reshard::cli
