// The cost of a list before it runs.
#include <fmt/format.h>

#include "report/list_table.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {

std::string id_text(const Json& id, std::size_t array) {
    if (id.is_null()) return fmt::format("#{}", array);
    return id.is_string() ? id.get<std::string>() : id.dump();
}

std::string list_text(const RequestList& asked, const ListSynthesis& made) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < asked.ids.size(); ++i) names.push_back(id_text(asked.ids[i], i));
    return list_table(made, names, asked.options.machine, page());
}

namespace {

// The load of the busiest device. `received_bytes` is there for scripts that read a plan's JSON.
void add_load(Json& json, const ListLoad& load) {
    json["received_bytes"] = load.received_bytes;
    json["received_bytes_max_device"] = load.received_bytes;
    json["received_exact"] = load.received_exact;
    json["sent_bytes_max_device"] = load.sent_bytes;
    json["sent_exact"] = load.sent_exact;
    json["messages"] = load.messages;
}

}  // namespace

Json list_json(const RequestList& asked, const ListSynthesis& made) {
    const ListVerdict& verdict = made.verdict();
    Json json;
    json["schema"] = 1;
    json["arrays"] = Json::array();
    Options of_each = asked.options;
    of_each.limits.memory.donate = asked.memory.donate;
    for (std::size_t i = 0; i < made.arrays.size(); ++i) {
        json["arrays"].push_back(
            plan_json(asked.ids[i], {asked.problems[i], of_each, {}, {}, asked.notes[i]}, made.arrays[i]));
    }
    json["buckets"] = Json::array();
    for (std::size_t b = 0; b < made.list().buckets.size(); ++b) {
        Json& bucket = json["buckets"].emplace_back();
        bucket["arrays"] = made.list().buckets[b];
        bucket["held_bytes"] = verdict.bucket_bytes[b];
        add_load(bucket, verdict.bucket_loads[b]);
    }
    json["together"] = made.list().together;
    json["footprint_bytes"] = verdict.footprint_bytes;
    json["footprint_bytes_max"] = asked.memory.footprint_bytes_max ? Json(*asked.memory.footprint_bytes_max) : Json();
    json["staging_bytes"] = asked.memory.staging_bytes;
    json["donate"] = asked.memory.donate;
    json["floor_bytes"] = made.floor_bytes;
    add_load(json, verdict.load);
    json["lower_bound_bytes"] = verdict.lower_bound_bytes;
    json["cut_alone"] = made.cut_alone;
    json["seconds_estimate"] = static_cast<double>(made.picoseconds) * 1e-12;
    json["fingerprint"] = fmt::format("{:016x}", fingerprint(made.list(), asked.memory));
    json["checked"] = true;
    return json;
}

}  // namespace reshard::cli
