// `reshard explain`: the plan beside everything else that was considered, and why each of those lost.
#include <fmt/format.h>

#include "commands.hpp"
#include "exit.hpp"
#include "json.hpp"
#include "numbers.hpp"
#include "plan_table.hpp"
#include "reshard/text.hpp"
#include "steps.hpp"
#include "table.hpp"
#include "terminal.hpp"

namespace reshard::cli {
namespace {

Json alternative_json(const Alternative& other) {
    return {{"rule", other.rule},
            {"steps", kinds(other.plan)},
            {"received_bytes_max_device", other.verdict.received_bytes_max_device},
            {"peak_bytes", other.verdict.peak_bytes},
            {"footprint_bytes", other.verdict.footprint_bytes},
            {"picoseconds_estimate", other.picoseconds},
            {"lost", other.lost}};
}

std::string alternatives_table(const Synthesis& made) {
    using Align = Table::Align;
    Table table({{""},
                 {"rule"},
                 {"steps", Align::left, true},
                 {"received", Align::right},
                 {"peak", Align::right},
                 {"footprint", Align::right},
                 {"estimate", Align::right},
                 {"why it lost", Align::left, true}});
    for (std::size_t i = 0; i < made.alternatives.size(); ++i) {
        const Alternative& other = made.alternatives[i];
        table.row({i == 0 ? "*" : "", other.rule, kinds(other.plan),
                   format_bytes(other.verdict.received_bytes_max_device), format_bytes(other.verdict.peak_bytes),
                   format_bytes(other.verdict.footprint_bytes), format_picoseconds(other.picoseconds),
                   i == 0 ? "chosen" : other.lost});
    }
    return table.text(line_width());
}

}  // namespace

int explain(const Arguments& arguments) {
    const auto refuse = [&](const Error& error) {
        if (arguments.json) answer(line(error_json(nullptr, error)));
        return complain(error);
    };
    const auto asked = understand(arguments.question);
    if (!asked) return refuse(asked.error());
    Options options = asked->options;
    options.explain = true;
    const auto made = synthesize(asked->problem, options);
    if (!made) return refuse(made.error());
    if (arguments.json) {
        Json json = plan_json(nullptr, *asked, *made, 0);
        json.erase("synthesis_us");
        json["alternatives"] = Json::array();
        for (const Alternative& other : made->alternatives) json["alternatives"].push_back(alternative_json(other));
        answer(line(json));
        return exit_ok;
    }
    answer(plan_table(*asked, *made) + plan_summary(*asked, *made));
    answer(fmt::format("\nconsidered for the least {}, of a device:\n", name(asked->options.objective)));
    answer(alternatives_table(*made));
    return exit_ok;
}

}  // namespace reshard::cli
