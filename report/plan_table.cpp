#include "report/plan_table.hpp"

#include <fmt/format.h>

#include "report/numbers.hpp"
#include "report/steps.hpp"
#include "report/table.hpp"
#include "reshard/planner/part_of_copy.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::cli {

namespace {

std::string steps_table(const Plan& plan, const Verdict& verdict, const Machine& machine, const Page& page) {
    Table table({">#", "step", "~", "layout", ">tile", ">received", ">estimate"});
    table.row({"0", "source", "", format(plan.source), format_bytes(tile_bytes(plan.source)), "", ""});
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        const Layout& before = layout_before(plan, i);
        const Move& move = verdict.moves[i];
        const Index cost = step_picoseconds(before, step, move, machine);
        table.row({std::to_string(i + 1), std::string(name(step.kind)), changes(before, step), format(step.layout),
                   format_bytes(tile_bytes(step.layout)),
                   format_bytes(saturating_multiply(move.received, size_of(before.dtype))),
                   is_part_of_copy(plan, i) ? "in the copy" : format_picoseconds(cost)});
    }
    return table.text(page);
}

std::string summary(const Synthesis& made, const Machine& machine, const Page& page) {
    const Verdict& verdict = made.verdict();
    const Index count = piece_count(made.execution());
    const std::string pieces = count == 1 ? "" : fmt::format(" in {} pieces", count);
    const MemoryPolicy& memory = made.limits().memory;
    const char* donated = memory.donate ? " (source donated)" : "";
    std::string text = fmt::format(
        "peak {} (floor {})   footprint {}{}{}   received {} (lower bound {})\n", format_bytes(verdict.peak_bytes),
        format_bytes(verdict.floor_bytes), format_bytes(verdict.footprint_bytes), pieces, donated,
        format_bytes(verdict.received_bytes_max_device), format_bytes(verdict.lower_bound_bytes));
    text += fmt::format("estimate {} on {}   {}{}   rule {}   {} states, {}   #{:016x}\n",
                        format_picoseconds(made.picoseconds), printable(machine.name), green("checked", page),
                        made.optimal ? ", optimal in bytes" : "", made.rule, made.states,
                        made.search_complete ? "complete" : name(made.stop_reason),
                        fingerprint(made.plan(), made.execution(), memory));
    if (std::holds_alternative<AsOneExchange>(made.execution()))
        text += "runs as one exchange: all ranks share a node\n";
    if (overlaps(made.execution()))
        text += fmt::format("runs in {} pieces whose steps overlap; one after the other they take {}\n", count,
                            format_picoseconds(plan_picoseconds(made.plan(), verdict, machine)));
    return text;
}

}  // namespace

std::string plan_table(const Synthesis& made, const Machine& machine, const Page& page) {
    return steps_table(made.plan(), made.verdict(), machine, page) + summary(made, machine, page);
}

std::string adjoint_table(const Judged<Plan>& back, const Machine& machine, const Page& page) {
    const Verdict& verdict = back.verdict();
    return "the way back of a gradient, by the adjoint of each step:\n" +
           steps_table(back.plan(), verdict, machine, page) +
           fmt::format("peak {} (floor {})   received {} (lower bound {})   estimate {} on {}   {}\n",
                       format_bytes(verdict.peak_bytes), format_bytes(verdict.floor_bytes),
                       format_bytes(verdict.received_bytes_max_device), format_bytes(verdict.lower_bound_bytes),
                       format_picoseconds(plan_picoseconds(back.plan(), verdict, machine)), printable(machine.name),
                       green("checked", page));
}

}  // namespace reshard::cli
