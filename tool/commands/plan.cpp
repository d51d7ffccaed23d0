// `reshard plan`: what will happen, what it costs and how good that is, before a byte moves.
#include <fmt/format.h>

#include <chrono>

#include "tool/commands/certify.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/numbers.hpp"
#include "tool/console/terminal.hpp"
#include "tool/report/plan_table.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

int plan(const Arguments& arguments) {
    if (arguments.batch) return batch();
    if (!arguments.list.empty()) return plan_list(arguments);
    const auto asked = request_for(arguments);
    if (!asked) return refuse(arguments.json, asked.error());
    const auto begin = std::chrono::steady_clock::now();
    const auto made = synthesize(asked->problem, asked->options);
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (!made) return refuse(arguments.json, made.error());
    std::optional<Certified> certified;
    if (arguments.certify) {
        auto proved = certify(*made, arguments.checker);
        if (!proved) return refuse(arguments.json, proved.error());
        certified = std::move(*proved);
    }
    if (arguments.json) {
        const Index us = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
        Json json = plan_json(nullptr, *asked, *made, us);
        if (certified) json["certified"] = certified_json(*certified);
        answer(line(json));
    } else {
        answer(plan_table(*asked, *made) + plan_summary(*asked, *made) + (certified ? certified_line(*certified) : ""));
    }
    return exit_ok;
}

}  // namespace reshard::cli
