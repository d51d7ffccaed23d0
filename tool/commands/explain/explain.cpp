// `reshard explain`: the plan beside everything else that was considered, why each of those lost, and which rules were
// asked.
#include <chrono>

#include "report/explanation.hpp"
#include "report/plan_table.hpp"
#include "report/steps.hpp"
#include "reshard/planner/adjoint.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/halo_request.hpp"
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
            {"pieces", piece_count(other.execution())},
            {"received_bytes_max_device", other.verdict().received_bytes_max_device},
            {"messages", messages(other.verdict())},
            {"peak_bytes", other.verdict().peak_bytes},
            {"footprint_bytes", other.verdict().footprint_bytes},
            {"levels", std::move(levels)},
            {"copies_picoseconds", times.copies},
            {"picoseconds_estimate", other.picoseconds},
            {"lost", other.lost}};
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

// The adjoint of the plan, judged. Padding and transpositions belong to the move, and not to the plan.
Result<Judged<Plan>> way_back(const Synthesis& made) {
    RESHARD_TRY(auto& back, in("--adjoint", adjoint(made.plan())));
    return in("--adjoint", judge(back, AsSteps{}));
}

}  // namespace

Result<int> explain(const Arguments& arguments) {
    if (!arguments.log.empty()) return explain_log(arguments);
    if (asks_for_halos(arguments.question)) return plan_halos(arguments);
    RESHARD_TRY(const auto& asked, request_for(arguments));
    Options options = asked.options;
    options.explain = true;
    if (arguments.times) options.clock = nanoseconds_now;
    RESHARD_TRY(const auto& made, synthesize(asked.problem, options));
    std::optional<Judged<Plan>> back;
    if (arguments.adjoint) {
        RESHARD_ASSIGN(back, way_back(made));
    }
    if (arguments.json) {
        Json json = plan_json(nullptr, asked, made);
        json["policy_row"] = made.row.name;
        json["alternatives"] = Json::array();
        for (const Alternative& other : made.alternatives)
            json["alternatives"].push_back(alternative_json(other, asked.options.machine));
        json["rules"] = Json::array();
        for (const RuleReport& report : made.rules) json["rules"].push_back(rule_json(report, arguments.times));
        add_nodes(json, made, options);
        if (back) {
            json["adjoint"] = {{"source", format(back->plan().source)},
                               {"target", format(back->plan().target)},
                               {"steps", kinds(back->plan())},
                               {"received_bytes_max_device", back->verdict().received_bytes_max_device}};
        }
        return answer(line(json));
    }
    answer(explanation(made, options, page()));
    if (back) answer(adjoint_table(*back, asked.options.machine, page()));
    return exit_ok;
}

}  // namespace reshard::cli
