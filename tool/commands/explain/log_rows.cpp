#include "tool/commands/explain/log_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/steps.hpp"
#include "reshard/notations/notation.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

Result<void> plan_row(LogRow& row) {
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
std::string line_of(const LogRow& row) {
    const auto spec = format(Notation::spec, row.target);
    if (!row.found.named || !spec) return "x = reshard.jax.reshard(x, sharding)";
    return fmt::format("x = reshard.jax.reshard(x, {})", *spec);
}

std::string lines(Index count) { return fmt::format("{} line{}", count, count == 1 ? "" : "s"); }

Json row_json(const LogRow& row) {
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

double LogRow::waste() const {
    if (error || xla_bytes == bytes) return 1;
    return bytes > 0 ? static_cast<double>(xla_bytes) / static_cast<double>(bytes)
                     : std::numeric_limits<double>::infinity();
}

std::string ratio(double waste) {
    return std::isinf(waste) ? "bytes where none are needed" : fmt::format("{:.3g}x", waste);
}

std::string where(const LogRow& row) {
    return row.found.place.empty() ? "the log does not say where" : shortened(row.found.place);
}

std::vector<LogRow> log_rows(std::string_view log) {
    std::vector<LogRow> rows;
    for (Rematerialization& found : rematerializations(log)) {
        LogRow& row = rows.emplace_back();
        row.found = std::move(found);
        if (const auto planned = plan_row(row); !planned) row.error = planned.error();
    }
    std::ranges::stable_sort(rows, std::greater(), &LogRow::saved);
    return rows;
}

std::string text_of(const std::vector<LogRow>& rows) {
    std::string text;
    Index received = 0, saved = 0, all = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const LogRow& row = rows[i];
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

Json json_of(const std::vector<LogRow>& rows) {
    Json json = {{"schema", 1}, {"rows", Json::array()}};
    for (const LogRow& row : rows) json["rows"].push_back(row_json(row));
    return json;
}

}  // namespace reshard::cli
