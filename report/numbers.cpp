#include "report/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reshard::cli {

std::string format_seconds(double seconds) {
    struct Unit {
        double size;
        const char* name;
    };
    static constexpr Unit units[] = {{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    if (seconds <= 0) return "0";
    for (const Unit& unit : units) {
        // 0.9995 ms would print as 1000 us; it belongs to the larger unit.
        if (seconds < unit.size * 0.9995 && unit.size > 1e-9) continue;
        const double value = seconds / unit.size;
        const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
        return fmt::format("{:.{}f} {}", value, digits, unit.name);
    }
    return "0";
}

std::string format_picoseconds(Index picoseconds) {
    return picoseconds == index_max ? "too long" : format_seconds(static_cast<double>(picoseconds) * 1e-12);
}

std::string format_rate(double bytes_per_second) { return fmt::format("{:.2f} GB/s", bytes_per_second * 1e-9); }

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace reshard::cli
