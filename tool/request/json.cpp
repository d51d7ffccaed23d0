#include "tool/request/json.hpp"

#include <fmt/format.h>

#include "reshard/boxes/nodes.hpp"
#include "reshard/text.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

Json steps_json(const Synthesis& made) {
    Json steps = Json::array();
    for (std::size_t i = 0; i < made.plan().steps.size(); ++i) {
        const Step& step = made.plan().steps[i];
        const Move& move = made.verdict().moves[i];
        const Index size = size_of(layout_before(made.plan(), i).dtype);
        steps.push_back({{"kind", name(step.kind)},
                         {"layout", format(step.layout)},
                         {"tile_bytes", tile_bytes(step.layout)},
                         {"received_bytes", saturating_multiply(move.received, size)},
                         {"sent_bytes", saturating_multiply(move.sent, size)},
                         {"group_size", move.group_size}});
    }
    return steps;
}

// An answer repeats the options that are chosen by name.
template <class T>
void echo(Json& json, const char* option, const T& value) {
    if constexpr (std::is_enum_v<T>) json[option] = name(value);
    if constexpr (std::is_same_v<T, Machine>) json[option] = value.name;
}

template <class T>
void show(Json& json, std::string_view field, const T& value) {
    if (field == "_") return;
    const std::string key(field);
    if constexpr (std::is_same_v<T, Execution>) {
        json[key] = name(value);
    } else if constexpr (std::is_same_v<T, std::optional<Index>>) {
        if (value) json[key] = *value;
    } else {
        json[key] = value;
    }
}

}  // namespace

Json plan_json(const Json& id, const Request& asked, const Synthesis& made, std::optional<Index> synthesis_us) {
    const Options& options = asked.options;
    Json json;
    json["schema"] = 1;
    json["id"] = id;
    json["mesh"] = format(asked.problem.source.mesh);
    json["source"] = format(asked.problem.source);
    json["target"] = format(asked.problem.target);
    json["target_mesh"] = format(asked.problem.target.mesh);
#define RESHARD_OPTION(kind, option, member, ...) echo(json, #option, options.member);
#include "src/tables/options.def"
    json["rule"] = made.rule;
    json["steps"] = steps_json(made);
#define RESHARD_SHOWN(slot, c, field, python, kind, value, about) show(json, #field, value);
#include "src/tables/verdict.def"
    if (synthesis_us) json["synthesis_us"] = *synthesis_us;
    json["fingerprint"] = fmt::format("{:016x}", fingerprint(made.plan(), made.execution(), options.limits.memory));
    json["checked"] = true;
    if (!asked.note.empty()) json["note"] = asked.note;
    return json;
}

Json intervals_json(const Side& side) {
    Json list = Json::array();
    for (const Interval& interval : side.intervals) list.push_back({interval.begin, interval.end});
    return list;
}

Json error_json(const Json& id, const Error& error) {
    const Error shown = readable(error);
    Json inner = {{"code", name(shown.code)}, {"message", shown.message}};
    if (!shown.text.empty()) {
        inner["text"] = shown.text;
        inner["offset"] = shown.offset;
    }
    return Json{{"id", id}, {"error", inner}};
}

int refuse(bool as_json, const Error& error) {
    if (as_json) answer(line(error_json(nullptr, error)));
    return complain(error);
}

std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

void add_nodes(Json& json, const Synthesis& made, const Options& options) {
    const auto move = faster_through_nodes({made.plan().source, made.plan().target}, made.picoseconds, options);
    if (!move) return;
    json["through_nodes"] = {{"node_devices", move->way.node_devices},
                             {"relays", move->way.relays},
                             {"picoseconds_estimate", move_picoseconds(*move, options.machine)},
                             {"footprint_bytes", footprint_bytes(*move)}};
}

}  // namespace reshard::cli
