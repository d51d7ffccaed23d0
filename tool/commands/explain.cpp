// `reshard explain`: the plan beside everything else that was considered, why each of those lost, and which rules were
// asked.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/numbers.hpp"
#include "tool/console/table.hpp"
#include "tool/console/terminal.hpp"
#include "tool/report/plan_table.hpp"
#include "tool/report/steps.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

Json alternative_json(const Alternative& other, const Machine& machine) {
    const Times times = plan_times(other.plan(), other.verdict(), machine);
    Json levels = Json::array();
    for (std::size_t i = 0; i < times.levels.size(); ++i)
        levels.push_back({{"level", machine.levels[i].name}, {"picoseconds", times.levels[i]}});
    return {{"rule", other.rule},
            {"steps", kinds(other.plan())},
            {"execution", name(other.execution())},
            {"received_bytes_max_device", other.verdict().received_bytes_max_device},
            {"messages", messages(other.verdict())},
            {"peak_bytes", other.verdict().peak_bytes},
            {"footprint_bytes", other.verdict().footprint_bytes},
            {"levels", std::move(levels)},
            {"copies_picoseconds", times.copies},
            {"picoseconds_estimate", other.picoseconds},
            {"lost", other.lost}};
}

std::string mark(std::size_t place) { return place == 0 ? "*" : ""; }

// What each moves and holds.
std::string bytes_table(const Synthesis& made) {
    using Align = Table::Align;
    Table table({{""},
                 {"rule"},
                 {"steps", Align::left, true},
                 {"received", Align::right},
                 {"messages", Align::right},
                 {"peak", Align::right},
                 {"footprint", Align::right}});
    for (std::size_t i = 0; i < made.alternatives.size(); ++i) {
        const Alternative& other = made.alternatives[i];
        table.row({mark(i), other.rule, kinds(other.plan()), format_bytes(other.verdict().received_bytes_max_device),
                   std::to_string(messages(other.verdict())), format_bytes(other.verdict().peak_bytes),
                   format_bytes(other.verdict().footprint_bytes)});
    }
    return table.text(line_width());
}

// Where each spends its time, and why it lost.
std::string times_table(const Synthesis& made, const Machine& machine) {
    using Align = Table::Align;
    std::vector<Table::Column> columns = {{""}, {"rule"}};
    for (const Level& level : machine.levels) columns.push_back({level.name, Align::right});
    columns.push_back({"copies", Align::right});
    columns.push_back({"estimate", Align::right});
    columns.push_back({"why it lost", Align::left, true});
    Table table(std::move(columns));
    for (std::size_t i = 0; i < made.alternatives.size(); ++i) {
        const Alternative& other = made.alternatives[i];
        const Times times = plan_times(other.plan(), other.verdict(), machine);
        std::vector<std::string> row = {mark(i), other.rule};
        for (const Index level : times.levels) row.push_back(format_picoseconds(level));
        row.push_back(format_picoseconds(times.copies));
        row.push_back(format_picoseconds(other.picoseconds));
        row.push_back(i == 0 ? "chosen" : other.lost);
        table.row(std::move(row));
    }
    return table.text(line_width());
}

// Which rules were asked, and what came of it.
std::string rules_table(const Synthesis& made, bool times) {
    using Align = Table::Align;
    std::vector<Table::Column> columns = {{"rule"}, {"candidates", Align::right}, {"kept", Align::right}};
    if (times) columns.push_back({"time", Align::right});
    columns.push_back({"what it does", Align::left, true});
    Table table(std::move(columns));
    const std::vector<Rule> all = rules();
    for (const RuleReport& report : made.rules) {
        std::vector<std::string> row = {std::string(report.rule), std::to_string(report.candidates),
                                        std::to_string(report.kept)};
        if (times) row.push_back(format_seconds(static_cast<double>(report.nanoseconds) * 1e-9));
        row.emplace_back(std::ranges::find(all, report.rule, &Rule::name)->about);
        table.row(std::move(row));
    }
    return table.text(line_width());
}

Json rule_json(const RuleReport& report, bool times) {
    Json json = {{"rule", report.rule}, {"candidates", report.candidates}, {"kept", report.kept}};
    if (times) json["nanoseconds"] = report.nanoseconds;
    return json;
}

Index nanoseconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

Result<int> explain(const Arguments& arguments) {
    RESHARD_TRY(const auto& asked, request_for(arguments));
    Options options = asked.options;
    options.explain = true;
    if (arguments.times) options.clock = nanoseconds_now;
    RESHARD_TRY(const auto& made, synthesize(asked.problem, options));
    if (arguments.json) {
        Json json = plan_json(nullptr, asked, made);
        json["alternatives"] = Json::array();
        for (const Alternative& other : made.alternatives)
            json["alternatives"].push_back(alternative_json(other, asked.options.machine));
        json["rules"] = Json::array();
        for (const RuleReport& report : made.rules) json["rules"].push_back(rule_json(report, arguments.times));
        answer(line(json));
        return exit_ok;
    }
    answer(plan_table(asked, made) + plan_summary(asked, made));
    answer(fmt::format("\nconsidered for the least {}, of a device:\n", name(asked.options.objective)));
    answer(bytes_table(made) + "\n" + times_table(made, asked.options.machine) + "\n");
    answer(rules_table(made, arguments.times));
    return exit_ok;
}

}  // namespace reshard::cli
