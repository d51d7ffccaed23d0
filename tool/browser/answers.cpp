#include "tool/browser/answers.hpp"

#include <fmt/format.h>

#include <array>

#include "report/numbers.hpp"
#include "report/picture.hpp"
#include "report/plan_table.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/explain/log_rows.hpp"
#include "tool/request/json.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::cli {
namespace {

// The notation whose texts begin like this one. nullopt: our own.
std::optional<std::string> recognized(std::string_view text) {
    struct Beginning {
        std::string_view text;
        const char* notation;
    };
    static constexpr auto beginnings = std::to_array<Beginning>({
        {"#sdy", "sdy"},
        {"<@", "sdy"},
        {"{", "hlo"},
        {"sharding={", "hlo"},
        {"mhlo.", "hlo"},
        {"P(", "spec"},
        {"PartitionSpec(", "spec"},
        {"NamedSharding(", "spec"},
        {"jax.sharding.", "spec"},
        {"(", "dtensor"},
        {"[", "dtensor"},
        {"Shard(", "dtensor"},
        {"S(", "dtensor"},
        {"Replicate", "dtensor"},
        {"Partial", "dtensor"},
        {"Spec(", "dtensor"},
        {"DTensorSpec(", "dtensor"},
    });
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
    for (const Beginning& one : beginnings)
        if (text.starts_with(one.text)) return one.notation;
    return std::nullopt;
}

// The plan that gathers the array first, and a sentence that compares it with the plan that was made.
Result<Json> gather_json(const Request& asked, const Synthesis& made) {
    RESHARD_TRY(auto& plan, gather_then_slice(asked.problem));
    RESHARD_TRY(const auto& gathered, judge(std::move(plan), AsSteps{}, asked.options.limits));
    const Verdict& verdict = gathered.verdict();
    const Index time = plan_picoseconds(gathered.plan(), verdict, asked.options.machine);
    const auto said = [](const Verdict& of, Index picoseconds) {
        return fmt::format("receives {} a device, holds {} and takes {}", format_bytes(of.received_bytes_max_device),
                           format_bytes(of.peak_bytes), format_picoseconds(picoseconds));
    };
    return Json{{"text", fmt::format("Gathering the array and slicing it {}. This plan {}.", said(verdict, time),
                                     said(made.verdict(), made.picoseconds))},
                {"received_bytes", verdict.received_bytes_max_device},
                {"peak_bytes", verdict.peak_bytes},
                {"picoseconds", time}};
}

// A line names the target only, so both ends must have one mesh.
Json lines_json(const Request& asked) {
    Json lines = Json::object();
    const Problem& ends = asked.written;
    const bool plain = asked.keeps_places() && !asked.changes.cast && shape(ends.source) == shape(ends.target);
    if (!plain || ends.source.mesh != ends.target.mesh) return lines;
    if (const auto spec = format(Notation::spec, ends.target))
        lines["jax"] = fmt::format("x = reshard.jax.reshard(x, {})", *spec);
    if (const auto placements = format(Notation::dtensor, ends.target))
        lines["torch"] = fmt::format("x = reshard.torch.redistribute(x, {})", *placements);
    return lines;
}

Result<Json> answered(const Json& id, Question question) {
    if (!question.notation) question.notation = recognized(question.source);
    RESHARD_TRY(const auto& asked, understand(question));
    RESHARD_TRY(const auto& made, synthesize(asked.problem, asked.options));
    Json json = {{"id", id}, {"table", plan_table(made, asked.options.machine, Page())}};
    if (auto gather = gather_json(asked, made)) json["gather"] = std::move(*gather);
    if (auto picture = svg_picture(made.plan(), asked.options.machine)) json["picture"] = std::move(*picture);
    json["lines"] = lines_json(asked);
    json["plan"] = plan_json(id, asked, made);
    return json;
}

}  // namespace

std::string answer_question(std::string_view question) {
    ProblemLine problem = parse_problem_line(question);
    if (!problem.question) return line(error_json(problem.id, problem.question.error()));
    const auto json = answered(problem.id, std::move(*problem.question));
    return line(json ? *json : error_json(problem.id, json.error()));
}

std::string answer_log(std::string_view log) {
    const auto rows = log_rows(log);
    return line({{"text", text_of(rows)}, {"rows", json_of(rows)["rows"]}});
}

}  // namespace reshard::cli
