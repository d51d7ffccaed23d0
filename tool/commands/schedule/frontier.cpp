// `reshard schedule --frontier`: memory against time.
#include <algorithm>

#include <fmt/format.h>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/schedule/asked.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

constexpr Index limits_shown = 8;

// The least limit that is found to fit, at most `high`.
Result<Index> least_limit(const Program& program, ScheduleOptions options, Index high) {
    options.rounds_max = 0;
    options.states_max = 0;
    Index low = 0;  // nothing below it is found to fit
    for (Index fits = high; low < fits;) {
        const Index middle = low + (fits - low) / 2;
        options.footprint_bytes_max = middle;
        const auto made = reshard::schedule(program, options);
        if (!made && made.error().code != Code::infeasible) return tl::unexpected(made.error());
        if (made) {
            fits = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

}  // namespace

Result<std::string> frontier(const Program& program, ScheduleOptions options) {
    RESHARD_TRY(const auto& free, reshard::schedule(program, options));
    const Index high = peak_bytes(free.verdict());
    RESHARD_TRY(const Index low, least_limit(program, options, high));
    Table table({">limit", ">ends at", ">bound", "stopped by", ">of the least end"});
    Index shown = -1;
    for (Index k = 0; k < limits_shown; ++k) {
        const Index limit = low + scale_up(high - low, k, limits_shown - 1);
        if (limit == shown) continue;
        shown = limit;
        options.footprint_bytes_max = limit;
        RESHARD_TRY(const auto& made, reshard::schedule(program, options));
        const Index end = made.verdict().picoseconds;
        table.row({format_bytes(limit), format_picoseconds(end), format_picoseconds(made.lower_bound),
                   std::string(name(made.stop)),
                   fmt::format("{:.3f}x", static_cast<double>(end) /
                                              static_cast<double>(std::max(Index{1}, free.verdict().picoseconds)))});
    }
    return table.text(page());
}

}  // namespace reshard::cli
