#include "tool/commands/run_report.hpp"

#include <fmt/format.h>

#include "report/numbers.hpp"
#include "report/plan_table.hpp"
#include "report/steps.hpp"
#include "report/table.hpp"
#include "reshard/planner/part_of_copy.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

Index predicted(const Request& asked, const Synthesis& made, std::size_t step) {
    if (is_part_of_copy(made.plan(), step)) return 0;
    return step_picoseconds(layout_before(made.plan(), step), made.plan().steps[step], made.verdict().moves[step],
                            asked.options.machine);
}

// Slices that another step follows are views, and a cast may be part of a copy.
std::string measured_text(const Plan& plan, std::size_t step, double seconds) {
    if (seconds >= 0) return format_seconds(seconds);
    return is_part_of_copy(plan, step) ? "in the copy" : "a view";
}

std::string steps_table(const Request& asked, const Synthesis& made, const RunReport& report) {
    Table table({">#", "step", "~", "layout", ">received", ">predicted", ">measured"});
    for (std::size_t i = 0; i < made.plan().steps.size(); ++i) {
        const Step& step = made.plan().steps[i];
        const Index size = size_of(layout_before(made.plan(), i).dtype);
        const double seconds = report.step_seconds[i];
        table.row({std::to_string(i + 1), std::string(name(step.kind)), changes(layout_before(made.plan(), i), step),
                   format(step.layout), format_bytes(saturating_multiply(made.verdict().moves[i].received, size)),
                   is_part_of_copy(made.plan(), i) ? "in the copy" : format_picoseconds(predicted(asked, made, i)),
                   measured_text(made.plan(), i, seconds)});
    }
    return table.text(page());
}

std::string transport_text(const RunReport& report) {
    return report.transport.empty() ? std::string() : fmt::format("moved by {}\n", report.transport);
}

std::string growth_text(const RunReport& report) {
    const char* whose = report.one_process ? "of the one process, all ranks together" : "of the largest rank";
    return fmt::format("resident growth {} {} (VmHWM{}), source, target and verification included\n",
                       format_bytes(report.memory.growth_bytes), whose,
                       report.memory.growth_exact ? "" : ", not reset");
}

}  // namespace

void add_memory(Json& json, const MemoryTaken& memory) {
    json["accounted_bytes"] = memory.accounted.all();
    json["source_bytes"] = memory.accounted.source;
    json["target_bytes"] = memory.accounted.target;
    json["workspace_bytes"] = memory.accounted.workspace;
    json["staging_bytes"] = memory.accounted.staging;
    json["resident_growth_bytes"] = memory.growth_bytes;
    json["resident_growth_exact"] = memory.growth_exact;
}

std::vector<double> seconds_of_plan(const Plan& plan, const RankPlan& ran, const std::vector<double>& seconds) {
    std::vector<double> result;
    std::size_t next = 0;
    for (const Step& step : plan.steps) {
        const bool run = next < ran.steps.size() && next < seconds.size() && ran.steps[next].schedule.kind == step.kind;
        result.push_back(run ? seconds[next++] : -1.0);
    }
    return result;
}

std::string run_text(const Request& asked, const Synthesis& made, const RunReport& report) {
    const Verified& verified = report.verified;
    const std::string word = verified.wrong == 0 ? green("ok", page()) : red("WRONG", page());
    std::string text = fmt::format("{}   {} ranks   {}   wrong {} of {}\n", word, report.ranks, report.backend,
                                   verified.wrong, verified.of);
    text += steps_table(asked, made, report);
    const double bytes = static_cast<double>(report.target_bytes);
    text += fmt::format("moved {} in {} ({}), predicted {} on {}\n", format_bytes(report.target_bytes),
                        format_seconds(report.seconds), format_rate(report.seconds > 0 ? bytes / report.seconds : 0),
                        format_picoseconds(made.picoseconds), printable(asked.options.machine.name));
    const Accounted& rank = report.memory.accounted;
    text += fmt::format("a rank accounts for {} = source {} + target {} + workspace {} + staging {}\n",
                        format_bytes(rank.all()), format_bytes(rank.source), format_bytes(rank.target),
                        format_bytes(rank.workspace), format_bytes(rank.staging));
    return text + transport_text(report) + growth_text(report);
}

Json run_json(const Request& asked, const Synthesis& made, const RunReport& report) {
    Json json = plan_json(nullptr, asked, made);
    for (std::size_t i = 0; i < made.plan().steps.size(); ++i) {
        json["steps"][i]["seconds_estimate"] = static_cast<double>(predicted(asked, made, i)) * 1e-12;
        const double seconds = report.step_seconds[i];
        json["steps"][i]["seconds_measured"] = seconds < 0 ? Json() : Json(seconds);
    }
    json["backend"] = report.backend;
    json["ranks"] = report.ranks;
    json["transport"] = report.transport;
    json["wrong"] = report.verified.wrong;
    json["elements_verified"] = report.verified.of;
    json["seconds_measured"] = report.seconds;
    json["target_bytes_all_ranks"] = report.target_bytes;
    add_memory(json, report.memory);
    json["resident_growth_of"] = report.one_process ? "one process with all ranks" : "the largest rank";
    return json;
}

}  // namespace reshard::cli
