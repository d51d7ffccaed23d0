// `reshard plan`: the steps, their cost and how good they are, before a byte moves.

#include <chrono>

#include "report/explanation.hpp"
#include "report/plan_table.hpp"
#include "src/base/try.hpp"
#include "tool/commands/certify.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/halo_request.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

Result<int> plan(const Arguments& arguments) {
    if (arguments.batch) return batch();
    if (!arguments.rows.empty()) return plan_rows(arguments);
    if (!arguments.lost.empty()) return plan_rebuild(arguments);
    if (!arguments.rules.empty()) return fail(Code::usage, "--rules: needs --rows or --lost");
    if (!arguments.list.empty()) return plan_list(arguments);
    if (asks_for_halos(arguments.question)) return plan_halos(arguments);
    RESHARD_TRY(const auto& asked, request_for(arguments));
    const auto begin = std::chrono::steady_clock::now();
    const auto made = synthesize(asked.problem, asked.options);
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (!made) return tl::unexpected(made.error());
    std::optional<Certified> certified;
    if (arguments.certify) {
        RESHARD_ASSIGN(certified, certify(*made, arguments.checker));
    }
    if (arguments.json) {
        const Index us = std::chrono::duration_cast<std::chrono::microseconds>(spent).count();
        Json json = plan_json(nullptr, asked, *made, us);
        add_nodes(json, *made, asked.options);
        if (certified) json["certified"] = certified_json(*certified);
        answer(line(json));
    } else {
        answer(plan_table(*made, asked.options.machine, page()) + line_on_nodes(*made, asked.options) +
               (certified ? certified_line(*certified) : ""));
    }
    return exit_ok;
}

}  // namespace reshard::cli
