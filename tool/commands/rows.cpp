// `reshard plan --rows`: the move as rows of bytes, one file for each rank.
#include <fmt/format.h>

#include "reshard/model/model_rows.hpp"
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

// A schedule, or the rows of a model, and the names of the arrays.
template <class Schedule>
WrittenMove written(Schedule schedule, std::function<std::pair<std::string, std::string>(std::size_t)> names) {
    const auto kept = std::make_shared<const Schedule>(std::move(schedule));
    return {kept->rank_count(),
            kept->array_count(),
            kept->question_count(),
            [kept](Index rank, RowSide side) { return kept->rows(rank, side); },
            [kept](Index rank, RowSide side) { return kept->nested_rows(rank, side); },
            std::move(names),
            {}};
}

Result<WrittenMove> one_array(const Arguments& arguments) {
    RESHARD_TRY(const auto& asked, understand(arguments.question));
    if (!asked.keeps_places())
        return fail(Code::usage,
                    "rows neither transpose nor pad: give the source in the order of the target and the elements that "
                    "both have, and say in --source-storage and --target-storage how the tiles lie");
    remark(asked.note);
    const auto& [source, target] = asked.problem;
    RankStorages storages;
    RESHARD_ASSIGN(storages.source, in("--source-storage", parse_storages(source, arguments.source_storage)));
    RESHARD_ASSIGN(storages.target, in("--target-storage", parse_storages(target, arguments.target_storage)));
    RESHARD_TRY(auto& schedule, RowSchedule::make(asked.problem, storages));
    const std::pair names(format(asked.problem.source), format(asked.problem.target));
    return written(std::move(schedule), [names](std::size_t) { return names; });
}

Result<WrittenMove> list_of_problems(const Arguments& arguments) {
    RESHARD_TRY(const auto& list, read_list(arguments));
    RESHARD_TRY(auto& schedule, RowSchedule::make(list.problems));
    std::vector<std::pair<std::string, std::string>> names;
    for (std::size_t i = 0; i < list.ids.size(); ++i) {
        const std::string name = id_text(list.ids[i], i);
        names.emplace_back(name, name);
    }
    return written(std::move(schedule), [names = std::move(names)](std::size_t array) { return names[array]; });
}

Result<WrittenMove> model(const Arguments& arguments) {
    RESHARD_TRY(const auto& list, read_list_text(arguments.list));
    RESHARD_TRY(const auto& rules, in("--rules", read_text(arguments.rules)));
    auto made = ModelRows::make(rules, list);
    if (!made) {
        RESHARD_CHECK(in("--list", parse_tensors(list)));
        return in("--rules", Result<WrittenMove>(tl::unexpected(made.error())));
    }
    const auto ends = std::make_shared<const ModelRows>(*made);
    WrittenMove move = written(*std::move(made), [ends](std::size_t array) { return ends->names(array); });
    move.dtypes = [ends](std::size_t array) { return ends->dtypes(array); };
    return move;
}

}  // namespace

Result<int> plan_rows(const Arguments& arguments) {
    const bool sends = arguments.side.empty() || arguments.side == "send";
    const RowSide side = sends ? RowSide::send : RowSide::receive;
    RESHARD_TRY(const auto& asked, !arguments.rules.empty()  ? model(arguments)
                                   : !arguments.list.empty() ? list_of_problems(arguments)
                                                             : one_array(arguments));
    RESHARD_TRY(const auto& totals, in("--rows", write_rows(arguments.rows, asked, side, arguments.nested)));
    if (arguments.json) {
        answer(line({{"schema", 1},
                     {"arrays", asked.arrays},
                     {"questions", asked.questions},
                     {"ranks", asked.ranks},
                     {"side", sends ? "send" : "receive"},
                     {"rows", totals.rows},
                     {"moved_bytes", totals.moved_bytes},
                     {"kept_bytes", totals.kept_bytes},
                     {"sent_bytes_max_device", totals.sent_bytes_max},
                     {"received_bytes_max_device", totals.received_bytes_max}}));
    } else {
        const std::size_t arrays = asked.arrays;
        answer(
            fmt::format("{} array{}, {} ranks   {} rows   moved {}, kept {}   a rank sends at most {}, receives {}\n",
                        arrays, arrays == 1 ? "" : "s", asked.ranks, totals.rows, format_bytes(totals.moved_bytes),
                        format_bytes(totals.kept_bytes), format_bytes(totals.sent_bytes_max),
                        format_bytes(totals.received_bytes_max)));
    }
    return exit_ok;
}

}  // namespace reshard::cli
