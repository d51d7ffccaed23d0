#include "report/list_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"

namespace reshard::cli {
namespace {

// Nothing of arrays that run as steps.
std::string executions_text(const ListPlan& list) {
    std::string text;
    const auto add = [&](const auto& runs_so, const char* how) {
        const auto arrays = std::ranges::count_if(list.executions, runs_so);
        if (arrays > 0) text += fmt::format("{} of {} arrays run {}\n", arrays, list.plans.size(), how);
    };
    add([](const Execution& one) { return std::holds_alternative<AsOneExchange>(one); },
        "as one exchange: all ranks share a node");
    add([](const Execution& one) { return std::holds_alternative<Split>(one); }, "in pieces");
    std::size_t together = 0;
    for (const auto& group : list.together) together += group.size();
    if (together > 0)
        text +=
            fmt::format("{} of {} arrays run step by step together and share messages\n", together, list.plans.size());
    return text;
}

// Marks a figure that was too much to count.
std::string_view at_most(bool exact) { return exact ? "" : "at most "; }

std::string received_text(const ListLoad& load) {
    return fmt::format("{}{}", at_most(load.received_exact), format_bytes(load.received_bytes));
}

}  // namespace

std::string list_table(const ListSynthesis& made, std::span<const std::string> names, const Machine& machine,
                       const Page& page) {
    Table table({">bucket", ">arrays", "from", "to", ">held", ">received", ">messages"});
    const ListVerdict& verdict = made.verdict();
    for (std::size_t b = 0; b < made.list().buckets.size(); ++b) {
        const auto& bucket = made.list().buckets[b];
        const ListLoad& load = verdict.bucket_loads[b];
        table.row({std::to_string(b + 1), std::to_string(bucket.size()), names[bucket.front()], names[bucket.back()],
                   format_bytes(verdict.bucket_bytes[b]), received_text(load), std::to_string(load.messages)});
    }
    std::string text = table.text(page);
    const auto& limit = made.memory().footprint_bytes_max;
    text += fmt::format(
        "{} arrays in {} buckets   footprint {} (floor {}{})   received {} (lower bound {})   sent {}{}   {} "
        "messages\n",
        made.list().plans.size(), made.list().buckets.size(), format_bytes(verdict.footprint_bytes),
        format_bytes(made.floor_bytes), limit ? fmt::format(", limit {}", format_bytes(*limit)) : "",
        received_text(verdict.load), format_bytes(verdict.lower_bound_bytes), at_most(verdict.load.sent_exact),
        format_bytes(verdict.load.sent_bytes), verdict.load.messages);
    text += fmt::format("estimate {} on {}   {}   #{:016x}\n", format_picoseconds(made.picoseconds),
                        printable(machine.name), green("checked", page), fingerprint(made.list(), made.memory()));
    if (made.cut_alone > 0)
        text += fmt::format("{} of {} arrays would end sooner in runs of their own, in pieces whose steps overlap\n",
                            made.cut_alone, made.list().plans.size());
    return text + executions_text(made.list());
}

}  // namespace reshard::cli
