// `reshard plan --lost`: what a rebuild from the replicas that are left moves, or the boxes that are lost.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/numbers.hpp"
#include "reshard/boxes/rebuild.hpp"
#include "reshard/model/rules.hpp"
#include "reshard/text.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

// An array, and its name in errors.
struct NamedMove {
    std::string name;
    RebuildMove move;
};

Result<std::vector<NamedMove>> moves_by_rules(const Arguments& arguments) {
    RESHARD_TRY(const auto& text, read_list_text(arguments.list));
    RESHARD_TRY(const auto& tensors, in("--list", parse_tensors(text)));
    RESHARD_TRY(const auto& rules, in("--rules", read_text(arguments.rules)));
    RESHARD_TRY(const auto& mapping, in("--rules", apply_rules(rules, tensors)));
    RESHARD_TRY(const auto& whole, in("--rules", whole_moves(mapping)));
    std::vector<NamedMove> moves;
    for (const WholeMove& one : whole)
        moves.push_back({in_quotes(mapping.sources[one.source].name), {one.ends.source, one.ends.target}});
    return moves;
}

Result<std::vector<NamedMove>> moves_of(const Arguments& arguments) {
    if (!arguments.rules.empty()) return moves_by_rules(arguments);
    if (arguments.list.empty()) {
        RESHARD_TRY(const auto& asked, request_for(arguments));
        return std::vector<NamedMove>{{"--lost", {asked.problem.source, asked.problem.target}}};
    }
    RESHARD_TRY(const auto& list, read_list(arguments));
    std::vector<NamedMove> moves;
    for (const Problem& one : list.problems)
        moves.push_back({fmt::format("array {}", moves.size()), {one.source, one.target}});
    return moves;
}

void add(BoxTraffic& sum, const BoxTraffic& one) {
    sum.received_bytes = saturating_add(sum.received_bytes, one.received_bytes);
    sum.sent_bytes = saturating_add(sum.sent_bytes, one.sent_bytes);
    sum.copied_bytes = saturating_add(sum.copied_bytes, one.copied_bytes);
}

// The traffic of each device, for all arrays together.
Result<std::vector<BoxTraffic>> traffic_of(const std::vector<NamedMove>& moves, const std::vector<Index>& lost) {
    std::vector<BoxTraffic> all;
    for (const auto& [name, move] : moves) {
        RESHARD_TRY(const auto& one, in(name, rebuild_traffic(move, lost)));
        all.resize(std::max(all.size(), one.size()));
        for (std::size_t device = 0; device < one.size(); ++device) add(all[device], one[device]);
    }
    return all;
}

Json json_of(const std::vector<BoxTraffic>& traffic, const std::vector<Index>& lost) {
    Json json = {{"schema", 1}, {"lost", lost}, {"devices", Json::array()}};
    for (const BoxTraffic& one : traffic)
        json["devices"].push_back(
            {{"received_bytes", one.received_bytes}, {"sent_bytes", one.sent_bytes}, {"kept_bytes", one.copied_bytes}});
    return json;
}

std::string text_of(std::size_t arrays, const std::vector<BoxTraffic>& traffic, const std::vector<Index>& lost) {
    BoxTraffic sum;
    BoxTraffic most;
    for (const BoxTraffic& one : traffic) {
        add(sum, one);
        most.received_bytes = std::max(most.received_bytes, one.received_bytes);
        most.sent_bytes = std::max(most.sent_bytes, one.sent_bytes);
    }
    return fmt::format(
        "{} array{} can be rebuilt without devices {}\nmoved {}, kept {}   a device sends at most {}, receives at most "
        "{} "
        "(lower bound {})\n",
        arrays, arrays == 1 ? "" : "s", fmt::join(lost, ", "), format_bytes(sum.received_bytes),
        format_bytes(sum.copied_bytes), format_bytes(most.sent_bytes), format_bytes(most.received_bytes),
        format_bytes(most.received_bytes));
}

}  // namespace

Result<int> plan_rebuild(const Arguments& arguments) {
    RESHARD_TRY(const auto& moves, moves_of(arguments));
    RESHARD_TRY(const auto& traffic, traffic_of(moves, arguments.lost));
    return answer(arguments.json ? line(json_of(traffic, arguments.lost))
                                 : text_of(moves.size(), traffic, arguments.lost));
}

}  // namespace reshard::cli
