// `reshard emit`: the plan as a program for the arrays of another framework.
#include "reshard/emit/write.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

namespace {

constexpr std::string_view typed = "spmd_types";

// A vocabulary that has a plan helps nobody whose program has no operation for it.
Result<Synthesis> planned(const Request& asked, const Question& question) {
    auto made = synthesize(asked.problem, asked.options);
    if (made || made.error().code != Code::infeasible || question.vocabulary != "collectives") return made;
    made.error().message += "; a tile program has no operation for its exchange";
    return made;
}

// The plan as text for `to`, and the fields of --json.
Result<Json> written(const Request& asked, const Plan& plan, const std::string& to) {
    Json json = {{"schema", 1}, {"to", to}};
    if (to == typed) {
        if (!(plan.source == asked.written.source && plan.target == asked.written.target))
            return fail(Code::unsupported, "typed collectives do not reshape or transpose; `torch` can say this plan");
        RESHARD_ASSIGN(json["text"], spmd_types_text(plan));
        return json;
    }
    RESHARD_TRY(const auto& framework, in("--to", parse_framework(to)));
    RESHARD_TRY(const auto& program, portable(plan, asked.written, asked.changes.permute));
    json["operations"] = Json::array();
    for (const Operation& operation : program.operations)
        json["operations"].push_back({{"kind", name(operation.kind)},
                                      {"input", operation.input},
                                      {"output", operation.output},
                                      {"received_elements", received_elements(operation)}});
    RESHARD_ASSIGN(json["text"], write(program, framework));
    return json;
}

}  // namespace

Result<int> emit(const Arguments& arguments) {
    if (arguments.to != typed) RESHARD_CHECK(in("--to", parse_framework(arguments.to)));
    Question question = arguments.question;
    question.vocabulary = question.vocabulary.value_or("collectives");
    if (arguments.to == typed) question.objective = question.objective.value_or("bytes");  // prefers whole mesh axes
    RESHARD_TRY(const auto& asked, understand(question));
    if (asked.changes.fill)
        return fail(Code::unsupported,
                    "a tile program does not pad, since padded tiles differ in shape on the way: pad "
                    "the array before it, or strip it after it");
    RESHARD_CHECK(has_program(asked.written));
    remark(asked.note);
    RESHARD_TRY(const auto& made, planned(asked, question));
    RESHARD_TRY(auto json, written(asked, made.plan(), arguments.to));
    if (!asked.note.empty()) json["note"] = asked.note;
    return answer(arguments.json ? line(json) : json["text"].get<std::string>());
}

}  // namespace reshard::cli
