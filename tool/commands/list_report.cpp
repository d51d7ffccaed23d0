// What a list costs before it runs.
#include <fmt/format.h>

#include <algorithm>

#include "reshard/text.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/numbers.hpp"
#include "tool/console/table.hpp"
#include "tool/console/terminal.hpp"
#include "tool/report/steps.hpp"

namespace reshard::cli {
namespace {

struct Sums {
    Index received = 0;
    Index messages = 0;
};

Sums sums_of(const ListVerdict& verdict, const std::vector<std::size_t>& bucket) {
    Sums sums;
    for (const std::size_t array : bucket) {
        sums.received = saturating_add(sums.received, verdict.plans[array].received_bytes);
        sums.messages = saturating_add(sums.messages, messages(verdict.plans[array]));
    }
    return sums;
}

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
    return text;
}

}  // namespace

std::string id_text(const Json& id, std::size_t array) {
    if (id.is_null()) return fmt::format("#{}", array);
    return id.is_string() ? id.get<std::string>() : id.dump();
}

std::string list_text(const RequestList& asked, const ListSynthesis& made) {
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
        const Sums sums = sums_of(verdict, bucket);
        table.row({std::to_string(b + 1), std::to_string(bucket.size()),
                   id_text(asked.ids[bucket.front()], bucket.front()), id_text(asked.ids[bucket.back()], bucket.back()),
                   format_bytes(verdict.bucket_bytes[b]), format_bytes(sums.received), std::to_string(sums.messages)});
    }
    std::string text = table.text(line_width());
    const auto& limit = asked.memory.footprint_bytes_max;
    text += fmt::format("{} arrays in {} buckets   footprint {} (floor {}{})   received {}   {} messages\n",
                        made.list().plans.size(), made.list().buckets.size(), format_bytes(verdict.footprint_bytes),
                        format_bytes(made.floor_bytes), limit ? fmt::format(", limit {}", format_bytes(*limit)) : "",
                        format_bytes(verdict.received_bytes), verdict.messages);
    text += fmt::format("estimate {} on {}, one by one   {}   #{:016x}\n", format_picoseconds(made.picoseconds),
                        asked.options.machine.name, green("checked"), fingerprint(made.list(), asked.memory));
    return text + executions_text(made.list());
}

Json list_json(const RequestList& asked, const ListSynthesis& made) {
    const ListVerdict& verdict = made.verdict();
    Json json;
    json["schema"] = 1;
    json["arrays"] = Json::array();
    Options of_each = asked.options;
    of_each.limits.memory.donate = asked.memory.donate;
    for (std::size_t i = 0; i < made.arrays.size(); ++i) {
        json["arrays"].push_back(plan_json(asked.ids[i], {asked.problems[i], of_each}, made.arrays[i]));
    }
    json["buckets"] = Json::array();
    for (std::size_t b = 0; b < made.list().buckets.size(); ++b) {
        const Sums sums = sums_of(verdict, made.list().buckets[b]);
        json["buckets"].push_back({{"arrays", made.list().buckets[b]},
                                   {"held_bytes", verdict.bucket_bytes[b]},
                                   {"received_bytes", sums.received},
                                   {"messages", sums.messages}});
    }
    json["footprint_bytes"] = verdict.footprint_bytes;
    json["footprint_bytes_max"] = asked.memory.footprint_bytes_max ? Json(*asked.memory.footprint_bytes_max) : Json();
    json["staging_bytes"] = asked.memory.staging_bytes;
    json["donate"] = asked.memory.donate;
    json["floor_bytes"] = made.floor_bytes;
    json["received_bytes"] = verdict.received_bytes;
    json["messages"] = verdict.messages;
    json["seconds_estimate"] = static_cast<double>(made.picoseconds) * 1e-12;
    json["fingerprint"] = fmt::format("{:016x}", fingerprint(made.list(), asked.memory));
    json["checked"] = true;
    return json;
}

}  // namespace reshard::cli
