#include "tool/report/list_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reshard/text.hpp"
#include "src/base/printable.hpp"
#include "tool/console/numbers.hpp"
#include "tool/console/table.hpp"
#include "tool/report/steps.hpp"

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

}  // namespace

BucketSums sums_of(const ListVerdict& verdict, const std::vector<std::size_t>& bucket) {
    BucketSums sums;
    for (const std::size_t array : bucket) {
        sums.received = saturating_add(sums.received, verdict.plans[array].received_bytes);
        sums.messages = saturating_add(sums.messages, messages(verdict.plans[array]));
    }
    return sums;
}

std::string list_table(const ListSynthesis& made, std::span<const std::string> names, const Machine& machine,
                       const Page& page) {
    using Align = Table::Align;
    Table table({{"bucket", Align::right},
                 {"arrays", Align::right},
                 {"from"},
                 {"to"},
                 {"held", Align::right},
                 {"received", Align::right},
                 {"messages", Align::right}});
    const ListVerdict& verdict = made.verdict();
    for (std::size_t b = 0; b < made.list().buckets.size(); ++b) {
        const auto& bucket = made.list().buckets[b];
        const BucketSums sums = sums_of(verdict, bucket);
        table.row({std::to_string(b + 1), std::to_string(bucket.size()), names[bucket.front()], names[bucket.back()],
                   format_bytes(verdict.bucket_bytes[b]), format_bytes(sums.received), std::to_string(sums.messages)});
    }
    std::string text = table.text(page);
    const auto& limit = made.memory().footprint_bytes_max;
    text += fmt::format("{} arrays in {} buckets   footprint {} (floor {}{})   received {}   {} messages\n",
                        made.list().plans.size(), made.list().buckets.size(), format_bytes(verdict.footprint_bytes),
                        format_bytes(made.floor_bytes), limit ? fmt::format(", limit {}", format_bytes(*limit)) : "",
                        format_bytes(verdict.received_bytes), verdict.messages);
    text += fmt::format("estimate {} on {}, one by one   {}   #{:016x}\n", format_picoseconds(made.picoseconds),
                        printable(machine.name), green("checked", page), fingerprint(made.list(), made.memory()));
    if (made.cut_alone > 0)
        text += fmt::format("{} of {} arrays would end sooner in runs of their own, in pieces whose steps overlap\n",
                            made.cut_alone, made.list().plans.size());
    return text + executions_text(made.list());
}

}  // namespace reshard::cli
