#include "tool/request/json.hpp"

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

Json steps_json(const Synthesis& made) {
    Json steps = Json::array();
    const Index size = size_of(made.plan().source.dtype);
    for (std::size_t i = 0; i < made.plan().steps.size(); ++i) {
        const Step& step = made.plan().steps[i];
        const Move& move = made.verdict().moves[i];
        steps.push_back({{"kind", name(step.kind)},
                         {"layout", format(step.layout)},
                         {"tile_bytes", tile_bytes(step.layout)},
                         {"received_bytes", saturating_multiply(move.received, size)},
                         {"sent_bytes", saturating_multiply(move.sent, size)},
                         {"group_size", move.group_size}});
    }
    return steps;
}

}  // namespace

Json plan_json(const Json& id, const Request& asked, const Synthesis& made, std::optional<Index> synthesis_us) {
    const Verdict& verdict = made.verdict();
    Json json;
    json["schema"] = 1;
    json["id"] = id;
    json["mesh"] = format(asked.problem.source.mesh);
    json["source"] = format(asked.problem.source);
    json["target"] = format(asked.problem.target);
    json["target_mesh"] = format(asked.problem.target.mesh);
    json["objective"] = name(asked.options.objective);
    json["vocabulary"] = name(asked.options.vocabulary);
    json["machine"] = asked.options.machine.name;
    json["rule"] = made.rule;
    json["steps"] = steps_json(made);
    json["peak_bytes"] = verdict.peak_bytes;
    json["floor_bytes"] = verdict.floor_bytes;
    json["footprint_bytes"] = verdict.footprint_bytes;
    json["donate"] = asked.options.limits.memory.donate;
    json["execution"] = name(made.execution());
    json["pieces"] = piece_count(made.execution());
    json["received_bytes"] = verdict.received_bytes;
    json["received_bytes_max_device"] = verdict.received_bytes_max_device;
    json["sent_bytes_max_device"] = verdict.sent_bytes_max_device;
    json["lower_bound_bytes"] = verdict.lower_bound_bytes;
    json["optimal"] = made.optimal;
    json["search_complete"] = made.search_complete;
    json["stop_reason"] = name(made.stop_reason);
    json["seconds_estimate"] = static_cast<double>(made.picoseconds) * 1e-12;
    json["picoseconds_estimate"] = made.picoseconds;
    if (overlaps(made.execution()))  // one step after the other
        json["serial_picoseconds_estimate"] = plan_picoseconds(made.plan(), verdict, asked.options.machine);
    json["states"] = made.states;
    if (synthesis_us) json["synthesis_us"] = *synthesis_us;
    json["fingerprint"] =
        fmt::format("{:016x}", fingerprint(made.plan(), made.execution(), asked.options.limits.memory));
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

}  // namespace reshard::cli
