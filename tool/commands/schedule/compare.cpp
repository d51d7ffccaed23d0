// `reshard schedule --compare`: which of several programs ends first.
#include <algorithm>

#include <fmt/format.h>

#include "report/numbers.hpp"
#include "report/table.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/schedule/asked.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {
namespace {

// A program and its schedule. The schedule is an error if no order that was tried keeps the limits.
struct Contestant {
    std::string name;
    Result<ScheduleSynthesis> made;
    [[nodiscard]] Index end() const { return made ? made->verdict().picoseconds : index_max; }
};

// A text that begins with the name of a generator is a program by name, any other is a file.
Result<Program> program_of(const std::string& text) {
    const std::string first = text.substr(0, text.find(' '));
    if (std::ranges::count(generators(), first, &Generator::name) > 0) return generate(text);
    return read_program(text);
}

Result<std::vector<Contestant>> contestants_of(const Arguments& arguments) {
    if (!arguments.program.empty() || !arguments.generate.empty() || arguments.print_program || arguments.svg ||
        arguments.trace || arguments.chain || arguments.script || arguments.frontier)
        return fail(Code::usage,
                    "--compare prints one table of the programs behind it: only --json and options of the "
                    "search and of moves go with it");
    RESHARD_TRY(const auto& options, schedule_options(arguments));
    std::vector<Contestant> all;
    for (const std::string& text : arguments.compared) {
        RESHARD_TRY(const auto& program, in(text, program_of(text)));
        Contestant one{text, in(text, reshard::schedule(program, options))};
        if (!one.made && one.made.error().code != Code::infeasible) return tl::unexpected(one.made.error());
        all.push_back(std::move(one));
    }
    if (std::ranges::none_of(all, [](const Contestant& one) { return one.made.has_value(); }))
        return tl::unexpected(all.front().made.error());
    return all;
}

// True if no order of another program ends sooner than this one, whatever a longer search finds.
bool surely_first(const std::vector<Contestant>& all, const Contestant& first) {
    return std::ranges::all_of(all, [&](const Contestant& one) {
        return &one == &first || (one.made && one.made->lower_bound >= first.end());
    });
}

std::string comparison_table(const std::vector<Contestant>& all, Index least) {
    Table table({"~program", ">ends at", ">ratio", ">bound", "stopped by", ">peak", ">tasks", ">moves"});
    for (const Contestant& one : all) {
        if (!one.made) {
            table.row({printable(one.name), "no order found", "", "", "", "", "", ""});
            continue;
        }
        const double ratio = least == 0 ? 1 : static_cast<double>(one.end()) / static_cast<double>(least);
        table.row({printable(one.name), format_picoseconds(one.end()), fmt::format("{:.3f}x", ratio),
                   format_picoseconds(one.made->lower_bound), std::string(name(one.made->stop)),
                   format_bytes(peak_bytes(one.made->verdict())), fmt::format("{}", one.made->program().tasks.size()),
                   fmt::format("{}", one.made->schedule().moves.size())});
    }
    return table.text(page());
}

std::string sentence(const std::vector<Contestant>& all, const Contestant& first) {
    std::string text;
    for (const Contestant& one : all)
        if (!one.made) text += printable(one.made.error().message) + "\n";
    const auto ties = std::ranges::count(all, first.end(), &Contestant::end);
    text += ties > 1 ? fmt::format("{} programs end first, at the same time", ties)
                     : fmt::format("{} ends first", printable(first.name));
    text += surely_first(all, first) ? ": no order of another program ends sooner\n"
                                     : ", as far as the search went: a longer one may find a better order of another\n";
    return text;
}

Json comparison_json(const std::vector<Contestant>& all, const Contestant& first) {
    Json programs = Json::array();
    for (const Contestant& one : all) {
        if (!one.made) {
            programs.push_back({{"program", one.name}, {"error", one.made.error().message}});
            continue;
        }
        programs.push_back({{"program", one.name},
                            {"end_ps", one.end()},
                            {"lower_bound_ps", one.made->lower_bound},
                            {"binding", one.made->binding},
                            {"stop", name(one.made->stop)},
                            {"peak_bytes", peak_bytes(one.made->verdict())},
                            {"tasks", one.made->program().tasks.size()},
                            {"moves", one.made->schedule().moves.size()}});
    }
    return {{"schema", 1},
            {"first", &first - all.data()},
            {"certain", surely_first(all, first)},
            {"programs", std::move(programs)}};
}

}  // namespace

Result<int> compare_programs(const Arguments& arguments) {
    RESHARD_TRY(const auto& all, contestants_of(arguments));
    const Contestant& first = *std::ranges::min_element(all, {}, &Contestant::end);
    answer(arguments.json ? line(comparison_json(all, first))
                          : comparison_table(all, first.end()) + sentence(all, first));
    return all.front().end() == first.end() ? exit_ok : exit_wrong;
}

}  // namespace reshard::cli
