// `reshard schedule`: when each task of a program runs, and each move travels.
#include <algorithm>

#include <fmt/format.h>

#include "report/lanes.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/program/schedule.hpp"
#include "reshard/program/script.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/schedule/asked.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

std::string generator_list() {
    std::string text;
    for (const Generator& generator : generators()) {
        text += fmt::format("{}: {}\n", generator.name, generator.about);
        for (const GeneratorParameter& parameter : generator.parameters)
            text += fmt::format("    {}={}  {}\n", parameter.name, parameter.value, parameter.about);
    }
    return text;
}

// Programs that are not HLO have an order of their own.
Result<ScheduledHlo> program_of(const Arguments& arguments, const Machine& machine) {
    if (!arguments.hlo.empty()) return read_hlo(arguments, machine);
    if (arguments.generate.empty() && arguments.program.empty())
        return fail(Code::usage, "schedule takes a file of tasks, --generate or --hlo (see reshard schedule --help)");
    RESHARD_TRY(auto& program, arguments.generate.empty() ? read_program(arguments.program)
                                                          : in("--generate", generate(arguments.generate)));
    return ScheduledHlo{std::move(program)};
}

// How far XLA's own order is from the bound.
std::string words(const ScheduledHlo& hlo, Index bound) {
    const double ratio = static_cast<double>(hlo.xla_picoseconds) / static_cast<double>(std::max<Index>(bound, 1));
    return fmt::format("XLA's own order takes {:.3f}x the bound; collectives: {} overlapped, {} waited for at once\n",
                       ratio, hlo.hidden, hlo.blocking);
}

Json schedule_json(const ScheduleSynthesis& made) {
    Json activities = Json::array();
    for (const ScheduledActivity& one : made.schedule().order) {
        Json activity{{one.is_move ? "move" : "task", name_of(made.program(), made.schedule(), one)},
                      {"start_ps", one.start},
                      {"end_ps", one.start + picoseconds_of(made.program(), made.schedule(), one)}};
        if (one.is_move) {
            const ProgramMove& move = made.schedule().moves[one.number];
            activity["array"] = move.array;
            if (const Split* const split = pieces_of(move)) activity["pieces"] = format(Execution(*split));
            activity["plan"] = format(move.plan.plan());
            activity["received_bytes"] = move.plan.verdict().received_bytes_max_device;
            Json users = Json::array();
            for (const UseNumber& user : move.users) users.push_back(made.program().tasks[user.task].name);
            activity["users"] = std::move(users);
        }
        activities.push_back(std::move(activity));
    }
    Json places = Json::array();
    for (const PlaceVerdict& place : made.verdict().places) {
        Json held = Json::array();
        for (const HeldBytes& step : place.held) held.push_back({step.picoseconds, step.bytes});
        places.push_back({{"device", place.device}, {"peak_bytes", place.peak_bytes}, {"held", std::move(held)}});
        if (place.limit != index_max) places.back()["limit_bytes"] = place.limit;
    }
    return {{"schema", 1},
            {"end_ps", made.verdict().picoseconds},
            {"lower_bound_ps", made.lower_bound},
            {"binding", made.binding},
            {"stop", name(made.stop)},
            {"rounds", made.rounds},
            {"states", made.states},
            {"written_ps", made.written_picoseconds},
            {"order", std::move(activities)},
            {"devices", std::move(places)}};
}

}  // namespace

Result<int> schedule(const Arguments& arguments) {
    if (arguments.generate == "list") {
        return answer(generator_list());
    }
    if (!arguments.compared.empty()) return compare_programs(arguments);
    RESHARD_TRY(const auto& options, schedule_options(arguments));
    const Machine& machine = options.moves.machine;
    RESHARD_TRY(const auto& hlo, program_of(arguments, machine));
    const Program& program = hlo.program;
    if (arguments.print_program) {
        return answer(files::format(program));
    }
    if (arguments.frontier) {
        RESHARD_TRY(const auto& text, frontier(program, options));
        return answer(text);
    }
    RESHARD_TRY(auto& made, reshard::schedule(program, options));
    if (!arguments.hlo.empty()) made.written_picoseconds = hlo.xla_picoseconds;
    if (arguments.script) {
        RESHARD_TRY(const auto& script, in("--script", script_of(made, machine, *arguments.script)));
        answer(files::format(made, script));
    } else if (arguments.json) {
        answer(line(schedule_json(made)));
    } else if (arguments.svg) {
        answer(schedule_svg(made, machine));
    } else if (arguments.trace) {
        answer(schedule_trace(made, machine));
    } else {
        answer(schedule_text(made, machine, page()));
        if (!arguments.hlo.empty()) answer(words(hlo, made.lower_bound));
        if (arguments.chain) answer("\n" + schedule_chain(made, machine, page()));
    }
    return exit_ok;
}

}  // namespace reshard::cli
