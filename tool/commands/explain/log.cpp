// `reshard explain --log`: what a training log complains of, beside what a plan would do. No JAX is asked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/steps.hpp"
#include "reshard/notations/notation.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/explain/xla_log.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr Index log_bytes_max = Index{1} << 32;

// A complaint beside the plan. XLA gathers the whole array, so a device receives all but its own tile.
struct Row {
    Rematerialization found;
    Layout source;
    Layout target;
    Index xla_bytes = 0;
    Index xla_peak = 0;
    Index bytes = 0;
    Index peak = 0;
    std::string steps;
    std::optional<Error> error;  // if no plan was found

    [[nodiscard]] Index saved() const { return error ? 0 : xla_bytes - bytes; }
    [[nodiscard]] double waste() const {
        if (error || xla_bytes == bytes) return 1;
        return bytes > 0 ? static_cast<double>(xla_bytes) / static_cast<double>(bytes)
                         : std::numeric_limits<double>::infinity();
    }
};

Result<void> plan_row(Row& row) {
    RESHARD_TRY(const auto& problem, problem_of(row.found));
    row.source = problem.source;
    row.target = problem.target;
    const Options options{.objective = Objective::bytes, .vocabulary = Vocabulary::collectives};
    RESHARD_TRY(const auto& made, synthesize(problem, options));
    row.xla_peak = global_bytes(problem.source);
    row.xla_bytes = row.xla_peak - tile_bytes(problem.source);
    row.bytes = made.verdict().received_bytes_max_device;
    row.peak = made.verdict().peak_bytes;
    row.steps = kinds(made.plan());
    return {};
}

// Axes that the log does not name are nobody's to write down.
std::string line_of(const Row& row) {
    const auto spec = format(Notation::spec, row.target);
    if (!row.found.named || !spec) return "x = reshard.jax.reshard(x, sharding)";
    return fmt::format("x = reshard.jax.reshard(x, {})", *spec);
}

std::string ratio(double waste) {
    return std::isinf(waste) ? "bytes where none are needed" : fmt::format("{:.3g}x", waste);
}

std::string where(const Row& row) {
    return row.found.place.empty() ? "the log does not say where" : shortened(row.found.place);
}

std::string lines(Index count) { return fmt::format("{} line{}", count, count == 1 ? "" : "s"); }

std::string text_of(const std::vector<Row>& rows) {
    std::string text;
    Index received = 0, saved = 0, all = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Row& row = rows[i];
        all += row.found.lines;
        text += fmt::format("{}. {}   {}\n", i + 1, where(row), lines(row.found.lines));
        if (row.error) {
            text += fmt::format("   {} -> {}\n   no plan: {}\n", shortened(row.found.source),
                                shortened(row.found.target), shortened(row.error->message));
            continue;
        }
        received = saturating_add(received, row.xla_bytes);
        saved = saturating_add(saved, row.saved());
        text += fmt::format("   {} -> {}\n", format(row.source), format(row.target));
        text += fmt::format("   XLA       {:>10}  peak {:>10}  all_gather of the whole array, slice\n",
                            format_bytes(row.xla_bytes), format_bytes(row.xla_peak));
        text += fmt::format("   reshard   {:>10}  peak {:>10}  {}\n", format_bytes(row.bytes), format_bytes(row.peak),
                            row.steps);
        if (row.saved() > 0)
            text += fmt::format("   saves {} ({}):  {}\n", format_bytes(row.saved()), ratio(row.waste()), line_of(row));
    }
    return text + fmt::format("{} of {} reshard{}; XLA receives {} a device, {} of it for nothing\n", lines(all),
                              rows.size(), rows.size() == 1 ? "" : "s", format_bytes(received), format_bytes(saved));
}

Json json_of(const Row& row) {
    Json json = {{"place", row.found.place},
                 {"lines", row.found.lines},
                 {"source", row.error ? row.found.source : format(row.source)},
                 {"target", row.error ? row.found.target : format(row.target)}};
    if (row.error) {
        json["problem"] = row.error->message;
        return json;
    }
    json["mesh"] = format(row.source.mesh);
    json["xla_bytes"] = row.xla_bytes;
    json["xla_peak"] = row.xla_peak;
    json["bytes"] = row.bytes;
    json["peak"] = row.peak;
    json["plan"] = row.steps;
    json["saved_bytes"] = row.saved();
    json["line"] = line_of(row);
    return json;
}

}  // namespace

Result<int> explain_log(const Arguments& arguments) {
    RESHARD_TRY(const auto& log, in("--log", read_text(arguments.log, log_bytes_max)));
    std::vector<Row> rows;
    for (Rematerialization& found : rematerializations(log)) {
        Row& row = rows.emplace_back();
        row.found = std::move(found);
        if (const auto planned = plan_row(row); !planned) row.error = planned.error();
    }
    std::ranges::stable_sort(rows, std::greater(), &Row::saved);
    if (arguments.json) {
        Json json = {{"schema", 1}, {"rows", Json::array()}};
        for (const Row& row : rows) json["rows"].push_back(json_of(row));
        answer(line(json));
    } else {
        answer(text_of(rows));
    }
    const auto worst = std::ranges::max_element(rows, {}, &Row::waste);
    if (worst == rows.end() || !arguments.waste_max || worst->waste() <= *arguments.waste_max) return exit_ok;
    complain({Code::infeasible, fmt::format("{}: XLA receives {} of what is needed, at most {}x is allowed",
                                            where(*worst), ratio(worst->waste()), *arguments.waste_max)});
    return exit_wrong;
}

}  // namespace reshard::cli
