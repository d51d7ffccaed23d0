// `reshard schedule`: when each task of a program runs, and each move travels.
#include <fmt/format.h>

#include <iostream>
#include <limits>

#include "report/lanes.hpp"
#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/files/program.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/program/schedule.hpp"
#include "reshard/program/script.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

constexpr Index limits_shown = 8;  // of the frontier

std::string generator_list() {
    std::string text;
    for (const Generator& generator : generators()) {
        text += fmt::format("{}: {}\n", generator.name, generator.about);
        for (const GeneratorParameter& parameter : generator.parameters)
            text += fmt::format("    {}={}  {}\n", parameter.name, parameter.value, parameter.about);
    }
    return text;
}

Result<Program> read_program(const Arguments& arguments) {
    if (!arguments.generate.empty()) return in("--generate", generate(arguments.generate));
    if (arguments.program.empty())
        return fail(Code::usage, "schedule takes a file of tasks, or --generate (see reshard schedule --help)");
    if (arguments.program != "-") {
        RESHARD_TRY(const auto& text, read_text(arguments.program));
        return files::parse_program(text);
    }
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (std::cin.bad()) return fail(Code::io, "cannot read the program from stdin");
    return files::parse_program(text);
}

// The footprint limit is of the whole program, not of each move.
Result<ScheduleOptions> options_of(const Arguments& arguments) {
    ScheduleOptions options;
    RESHARD_CHECK(read_options(arguments.question, options.moves));
    options.footprint_bytes_max = std::exchange(options.moves.limits.memory.footprint_bytes_max, std::nullopt);
    options.rounds_max = arguments.search_rounds;
    return options;
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

Json script_json(const ScheduleSynthesis& made, const DeviceScript& script) {
    Json steps = Json::array();
    for (const ScriptStep& step : script.steps) {
        const ScheduledActivity& one = made.schedule().order[step.activity];
        Json line{{"activity", step.activity},
                  {one.is_move ? "move" : "task", name_of(made.program(), made.schedule(), one)},
                  {"after", step.after}};
        if (one.is_move) {
            const Plan& plan = made.schedule().moves[one.number].plan.plan();
            line["array"] = made.schedule().moves[one.number].array;
            line["sends"] = position_of(plan.source.mesh, script.device).has_value();
            line["receives"] = position_of(plan.target.mesh, script.device).has_value();
        }
        steps.push_back(std::move(line));
    }
    Json memory = Json::array();
    for (const ScriptMemory& one : script.memory) {
        Json line{{one.layout ? "array" : "borrowed_by", one.name}, {"bytes", one.bytes}};
        if (one.layout) line["layout"] = format(*one.layout);
        if (one.taken_by) line["taken_by"] = *one.taken_by;
        if (!one.freed_by.empty()) line["freed_by"] = one.freed_by;
        if (one.handed_to) line["handed_to"] = *one.handed_to;
        memory.push_back(std::move(line));
    }
    Json json{{"schema", 1}, {"device", script.device}, {"steps", std::move(steps)}, {"memory", std::move(memory)}};
    if (script.limit != index_max) json["limit_bytes"] = script.limit;
    return json;
}

// The end under limits between the least that is found and the peak of a schedule without one.
Result<std::string> frontier(const Program& program, ScheduleOptions options) {
    RESHARD_TRY(const auto& free, reshard::schedule(program, options));
    Index high = 0;
    for (const PlaceVerdict& place : free.verdict().places) high = std::max(high, place.peak_bytes);
    ScheduleOptions quick = options;
    quick.rounds_max = 0;
    quick.states_max = 0;
    Index low = 0;  // nothing below it is found to fit
    for (Index fits = high; low < fits;) {
        const Index middle = low + (fits - low) / 2;
        quick.footprint_bytes_max = middle;
        const auto made = reshard::schedule(program, quick);
        if (!made && made.error().code != Code::infeasible) return tl::unexpected(made.error());
        if (made) {
            fits = middle;
        } else {
            low = middle + 1;
        }
    }
    Table table({{"limit", Table::Align::right},
                 {"ends at", Table::Align::right},
                 {"bound", Table::Align::right},
                 {"stopped by"},
                 {"of the least end", Table::Align::right}});
    Index shown = -1;
    for (Index k = 0; k < limits_shown; ++k) {
        const Index limit = low + scale_up(high - low, k, limits_shown - 1);
        if (limit == shown) continue;
        shown = limit;
        options.footprint_bytes_max = limit;
        RESHARD_TRY(const auto& made, reshard::schedule(program, options));
        const Index end = made.verdict().picoseconds;
        table.row({format_bytes(limit), format_picoseconds(end), format_picoseconds(made.lower_bound),
                   std::string(name(made.stop)),
                   fmt::format("{:.3f}x", static_cast<double>(end) /
                                              static_cast<double>(std::max(Index{1}, free.verdict().picoseconds)))});
    }
    return table.text(page());
}

}  // namespace

Result<int> schedule(const Arguments& arguments) {
    if (arguments.generate == "list") {
        answer(generator_list());
        return exit_ok;
    }
    RESHARD_TRY(const auto& program, read_program(arguments));
    if (arguments.print_program) {
        answer(files::format(program));
        return exit_ok;
    }
    RESHARD_TRY(const auto& options, options_of(arguments));
    if (arguments.frontier) {
        RESHARD_TRY(const auto& text, frontier(program, options));
        answer(text);
        return exit_ok;
    }
    RESHARD_TRY(const auto& made, reshard::schedule(program, options));
    const Machine& machine = options.moves.machine;
    if (arguments.script) {
        RESHARD_TRY(const auto& script, in("--script", script_of(made, machine, *arguments.script)));
        answer(line(script_json(made, script)));
    } else if (arguments.json) {
        answer(line(schedule_json(made)));
    } else if (arguments.svg) {
        answer(schedule_svg(made, machine));
    } else if (arguments.trace) {
        answer(schedule_trace(made, machine));
    } else {
        answer(schedule_text(made, machine, page()));
        if (arguments.chain) answer("\n" + schedule_chain(made, machine, page()));
    }
    return exit_ok;
}

}  // namespace reshard::cli
