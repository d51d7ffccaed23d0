// `reshard plan --rows`: the move as rows of bytes, one file for each rank.
#include <fmt/format.h>

#include "reshard/model/rules.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/commands/list.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"
#include "tool/output/row_files.hpp"

namespace reshard::cli {
namespace {

/// The rows of a move, and the names of its tensors at both ends.
struct Asked {
    RowSchedule schedule;
    std::vector<std::pair<std::string, std::string>> names;
};

Result<Asked> one_array(const Arguments& arguments) {
    RESHARD_TRY(const auto& asked, understand(arguments.question));
    remark(asked.note);
    const auto& [source, target] = asked.problem;
    RankStorages storages;
    RESHARD_ASSIGN(storages.source, in("--source-storage", parse_storages(source, arguments.source_storage)));
    RESHARD_ASSIGN(storages.target, in("--target-storage", parse_storages(target, arguments.target_storage)));
    RESHARD_TRY(auto& schedule, RowSchedule::make(asked.problem, storages));
    return Asked{std::move(schedule), {{format(asked.problem.source), format(asked.problem.target)}}};
}

Result<Asked> list_of_problems(const Arguments& arguments) {
    RESHARD_TRY(const auto& list, read_list(arguments));
    RESHARD_TRY(auto& schedule, RowSchedule::make(list.problems));
    Asked asked{std::move(schedule), {}};
    for (std::size_t i = 0; i < list.ids.size(); ++i) {
        const std::string name = id_text(list.ids[i], i);
        asked.names.emplace_back(name, name);
    }
    return asked;
}

Result<Asked> model(const Arguments& arguments) {
    RESHARD_TRY(const auto& list, read_list_text(arguments.list));
    RESHARD_TRY(const auto& rules, in("--rules", read_text(arguments.rules)));
    RESHARD_TRY(const auto& tensors, in("--list", parse_tensors(list)));
    RESHARD_TRY(const auto& moves, in("--rules", apply_rules(rules, tensors)));
    RESHARD_TRY(auto& schedule, RowSchedule::make(moves.moves));
    Asked asked{std::move(schedule), {}};
    asked.names.reserve(moves.ends.size());
    for (const CheckpointMapping::Ends& ends : moves.ends)
        asked.names.emplace_back(moves.sources[ends.source].name, moves.targets[ends.target].name);
    return asked;
}

}  // namespace

Result<int> plan_rows(const Arguments& arguments) {
    const bool sends = arguments.side.empty() || arguments.side == "send";
    const RowSide side = sends ? RowSide::send : RowSide::receive;
    RESHARD_TRY(const auto& asked, !arguments.rules.empty()  ? model(arguments)
                                   : !arguments.list.empty() ? list_of_problems(arguments)
                                                             : one_array(arguments));
    RESHARD_TRY(const auto& totals,
                in("--rows", write_rows(arguments.rows, asked.schedule, side, arguments.nested, asked.names)));
    if (arguments.json) {
        answer(line({{"schema", 1},
                     {"arrays", asked.schedule.array_count()},
                     {"questions", asked.schedule.question_count()},
                     {"ranks", asked.schedule.rank_count()},
                     {"side", sends ? "send" : "receive"},
                     {"rows", totals.rows},
                     {"moved_bytes", totals.moved_bytes},
                     {"kept_bytes", totals.kept_bytes},
                     {"sent_bytes_max_device", totals.sent_bytes_max},
                     {"received_bytes_max_device", totals.received_bytes_max}}));
    } else {
        const std::size_t arrays = asked.schedule.array_count();
        answer(
            fmt::format("{} array{}, {} ranks   {} rows   moved {}, kept {}   a rank sends at most {}, receives {}\n",
                        arrays, arrays == 1 ? "" : "s", asked.schedule.rank_count(), totals.rows,
                        format_bytes(totals.moved_bytes), format_bytes(totals.kept_bytes),
                        format_bytes(totals.sent_bytes_max), format_bytes(totals.received_bytes_max)));
    }
    return exit_ok;
}

}  // namespace reshard::cli
