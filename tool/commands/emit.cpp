// `reshard emit`: the plan as a program for the arrays of another framework.
#include <fmt/format.h>

#include "reshard/emit/write.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

namespace {

// A vocabulary that has a plan helps nobody whose program has no operation for it.
Result<Synthesis> planned(const Request& asked, const Question& question) {
    auto made = synthesize(asked.problem, asked.options);
    if (made || made.error().code != Code::infeasible || question.vocabulary != "collectives") return made;
    made.error().message += "; a tile program has no operation for its exchange";
    return made;
}

}  // namespace

Result<int> emit(const Arguments& arguments) {
    RESHARD_TRY(const auto& framework, in("--to", parse_framework(arguments.to)));
    Question question = arguments.question;
    question.vocabulary = question.vocabulary.value_or("collectives");
    RESHARD_TRY(const auto& asked, understand(question));
    if (asked.changes.fill)
        return fail(Code::unsupported,
                    "a tile program does not pad, since padded tiles differ in shape on the way: pad "
                    "the array before it, or strip it after it");
    RESHARD_CHECK(has_program(asked.written));
    remark(asked.note);
    RESHARD_TRY(const auto& made, planned(asked, question));
    RESHARD_TRY(const auto& program, portable(made.plan(), asked.written, asked.changes.permute));
    RESHARD_TRY(const auto& text, write(program, framework));
    if (!arguments.json) {
        answer(text);
        return exit_ok;
    }
    Json operations = Json::array();
    for (const Operation& operation : program.operations)
        operations.push_back({{"kind", name(operation.kind)},
                              {"input", operation.input},
                              {"output", operation.output},
                              {"received_elements", received_elements(operation)}});
    Json json = {{"schema", 1}, {"to", name(framework)}, {"operations", std::move(operations)}, {"text", text}};
    if (!asked.note.empty()) json["note"] = asked.note;
    answer(line(json));
    return exit_ok;
}

}  // namespace reshard::cli
