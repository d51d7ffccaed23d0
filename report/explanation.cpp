#include "report/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/numbers.hpp"
#include "report/plan_table.hpp"
#include "report/steps.hpp"
#include "report/table.hpp"
#include "reshard/boxes/nodes.hpp"
#include "reshard/text.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard::cli {
namespace {

std::string mark(std::size_t place) { return place == 0 ? "*" : ""; }

// The shortest runs that steps copy; nothing where all are slices and views.
std::string shortest_run(const Plan& plan) {
    Index least = index_max;
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (!is_alias(plan.steps[i].kind))
            least = std::min(least, saturating_multiply(copied_run(layout_before(plan, i), plan.steps[i].layout),
                                                        size_of(layout_before(plan, i).dtype)));
    return least == index_max ? "" : format_bytes(least);
}

// The bytes that each candidate moves and holds.
std::string bytes_table(const Synthesis& made, const Page& page) {
    Table table({"", "rule", "~steps", ">received", ">messages", ">shortest run", ">peak", ">footprint"});
    for (std::size_t i = 0; i < made.alternatives.size(); ++i) {
        const Alternative& other = made.alternatives[i];
        table.row({mark(i), other.rule, kinds(other.plan()), format_bytes(other.verdict().received_bytes_max_device),
                   std::to_string(messages(other.verdict())), shortest_run(other.plan()),
                   format_bytes(other.verdict().peak_bytes), format_bytes(other.verdict().footprint_bytes)});
    }
    return table.text(page);
}

// The time of each candidate on each level, and why it lost.
std::string times_table(const Synthesis& made, const Machine& machine, const Page& page) {
    using Align = Table::Align;
    std::vector<Table::Column> columns = {{""}, {"rule"}};
    for (const Level& level : machine.levels) columns.push_back({level.name, Align::right});
    columns.push_back({"copies", Align::right});
    const bool pieces =
        std::ranges::any_of(made.alternatives, [](const Alternative& other) { return overlaps(other.execution()); });
    if (pieces) columns.push_back({"pieces", Align::right});
    columns.push_back({"estimate", Align::right});
    columns.push_back({"why it lost", Align::left, true});
    Table table(std::move(columns));
    for (std::size_t i = 0; i < made.alternatives.size(); ++i) {
        const Alternative& other = made.alternatives[i];
        const Times times = plan_times(other.plan(), other.verdict(), machine);
        std::vector<std::string> row = {mark(i), other.rule};
        for (const Index level : times.levels) row.push_back(format_picoseconds(level));
        row.push_back(format_picoseconds(times.copies));
        if (pieces) row.push_back(std::to_string(overlaps(other.execution()) ? piece_count(other.execution()) : 1));
        row.push_back(format_picoseconds(other.picoseconds));
        row.push_back(i == 0 ? "chosen" : other.lost);
        table.row(std::move(row));
    }
    return table.text(page);
}

// Which rules were asked, and what came of it.
std::string rules_table(const Synthesis& made, bool times, const Page& page) {
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
    return table.text(page);
}

}  // namespace

std::string line_on_nodes(const Synthesis& made, const Options& asked) {
    const auto move = faster_through_nodes({made.plan().source, made.plan().target}, made.picoseconds, asked);
    if (!move) return "";
    return fmt::format(
        "through nodes of {} devices{}: {}, less than the plan; a Redistributor runs it on this machine (footprint "
        "{})\n",
        move->way.node_devices, move->way.relays ? ", with relays" : "",
        format_picoseconds(move_picoseconds(*move, asked.machine)), format_bytes(footprint_bytes(*move)));
}

std::string explanation(const Synthesis& made, const Options& asked, const Page& page) {
    const std::string on_nodes = line_on_nodes(made, asked);
    return plan_table(made, asked.machine, page) + fmt::format("policy row {}: {}\n", made.row.name, made.row.about) +
           fmt::format("\nconsidered for the least {}, of a device:\n", name(asked.objective)) +
           bytes_table(made, page) + "\n" + times_table(made, asked.machine, page) + "\n" +
           (on_nodes.empty() ? "" : on_nodes + "\n") + rules_table(made, asked.clock != nullptr, page);
}

}  // namespace reshard::cli
