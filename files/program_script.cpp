// The script of a device as JSON.
#include "files/formats/json_text.hpp"
#include "reshard/files/program.hpp"
#include "reshard/text.hpp"

namespace reshard::files {
namespace {

Json step_json(const Judged<ProgramSchedule>& made, const ScriptStep& step, Index device) {
    const ProgramSchedule& schedule = made.schedule();
    const ScheduledActivity& one = schedule.order[step.activity];
    Json json{{"activity", step.activity},
              {one.is_move ? "move" : "task", name_of(made.program(), schedule, one)},
              {"after", step.after}};
    if (step.beside) json["beside"] = *step.beside;
    if (!one.is_move) return json;
    if (const Split* const split = pieces_of(schedule.moves[one.number]))
        json["pieces"] = reshard::format(Execution(*split));
    const Plan& plan = schedule.moves[one.number].plan.plan();
    json["array"] = schedule.moves[one.number].array;
    json["sends"] = position_of(plan.source.mesh, device).has_value();
    json["receives"] = position_of(plan.target.mesh, device).has_value();
    return json;
}

Json memory_json(const ScriptMemory& one) {
    Json json{{one.layout ? "array" : "borrowed_by", one.name}, {"bytes", one.bytes}};
    if (one.layout) json["layout"] = reshard::format(*one.layout);
    if (one.taken_by) json["taken_by"] = *one.taken_by;
    if (!one.freed_by.empty()) json["freed_by"] = one.freed_by;
    if (one.handed_to) json["handed_to"] = *one.handed_to;
    return json;
}

}  // namespace

std::string format(const Judged<ProgramSchedule>& made, const DeviceScript& script) {
    Json steps = Json::array();
    for (const ScriptStep& step : script.steps) steps.push_back(step_json(made, step, script.device));
    Json memory = Json::array();
    for (const ScriptMemory& one : script.memory) memory.push_back(memory_json(one));
    Json json{{"schema", 1}, {"device", script.device}, {"steps", std::move(steps)}, {"memory", std::move(memory)}};
    if (script.limit != index_max) json["limit_bytes"] = script.limit;
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reshard::files
