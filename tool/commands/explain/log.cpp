// `reshard explain --log`: what a training log complains of, beside what a plan would do. No JAX is asked.
#include <fmt/format.h>

#include <algorithm>

#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/explain/log_rows.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

constexpr Index log_bytes_max = Index{1} << 32;

}  // namespace

Result<int> explain_log(const Arguments& arguments) {
    RESHARD_TRY(const auto& log, in("--log", read_text(arguments.log, log_bytes_max)));
    const auto rows = log_rows(log);
    answer(arguments.json ? line(json_of(rows)) : text_of(rows));
    const auto worst = std::ranges::max_element(rows, {}, &LogRow::waste);
    if (worst == rows.end() || !arguments.waste_max || worst->waste() <= *arguments.waste_max) return exit_ok;
    complain({Code::infeasible, fmt::format("{}: XLA receives {} of what is needed, at most {}x is allowed",
                                            where(*worst), ratio(worst->waste()), *arguments.waste_max)});
    return exit_wrong;
}

}  // namespace reshard::cli
