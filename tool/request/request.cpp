#include "tool/request/request.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reshard/notation.hpp"
#include "src/base/try.hpp"
#include "tool/console/exit.hpp"

namespace reshard::cli {
namespace {

Result<Problem> read_foreign_problem(const Question& question) {
    auto source = read_layout(question, question.mesh, question.array, question.source);
    if (!source) return in("source", source.error());
    const auto& target_array = question.target_array ? question.target_array : question.array;
    auto target = read_layout(question, question.target_mesh.value_or(question.mesh), target_array, question.target);
    if (!target) return in("target", target.error());
    share_mesh(*source, *target);  // notations without names get them from both ends
    return Problem{std::move(*source), std::move(*target)};
}

Result<Problem> read_problem(const Question& question) {
    if (question.notation) return read_foreign_problem(question);
    auto mesh = parse_mesh(question.mesh);
    if (!mesh) return in("mesh", mesh.error());
    auto target_mesh = question.target_mesh ? parse_mesh(*question.target_mesh) : mesh;
    if (!target_mesh) return in("target mesh", target_mesh.error());
    auto source = parse_layout(*mesh, question.source);
    if (!source) return in("source", source.error());
    auto target = parse_layout(*target_mesh, question.target);
    if (!target) return in("target", target.error());
    return Problem{std::move(*source), std::move(*target)};
}

Result<void> read_limit(const char* name, const std::optional<std::string>& text, std::optional<Index>& limit) {
    if (!text) return {};
    auto bytes = parse_bytes(*text);
    if (!bytes) return in(name, bytes.error());
    limit = *bytes;
    return {};
}

Result<void> read_options(const Question& question, Options& options) {
    options.without = question.without;
    if (question.vocabulary) {
        auto vocabulary = parse_vocabulary(*question.vocabulary);
        if (!vocabulary) return in("vocabulary", vocabulary.error());
        options.vocabulary = *vocabulary;
    }
    if (question.objective) {
        auto objective = parse_objective(*question.objective);
        if (!objective) return in("objective", objective.error());
        options.objective = *objective;
    }
    if (question.machine) {
        // A machine's text has lines; the name of one that is built in has none.
        const bool lines = question.machine->find('\n') != std::string::npos;
        auto machine = lines ? parse_machine(*question.machine) : make_machine(*question.machine);
        if (!machine) return in("machine", machine.error());
        options.machine = *machine;
    }
    Limits& limits = options.limits;
    limits.memory.donate = question.donate;
    RESHARD_CHECK(read_limit("peak_bytes_max", question.peak_bytes_max, limits.peak_bytes_max));
    return read_limit("footprint_bytes_max", question.footprint_bytes_max, limits.memory.footprint_bytes_max);
}

// `kind layout`: how a plan writes its steps.
Result<Step> read_step(const Mesh& mesh, const std::string& text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t space = std::min(text.find(' ', begin), text.size());
    const auto kind = parse_step_kind(std::string_view(text).substr(begin, space - begin));
    if (!kind) return in("first step", kind.error());
    auto layout = parse_layout(mesh, std::string_view(text).substr(space));
    if (!layout) return in("first step", layout.error());
    return Step{*kind, std::move(*layout)};
}

}  // namespace

Result<Layout> read_layout(const Question& question, const std::string& mesh, const std::optional<std::string>& given,
                           const std::string& text) {
    const auto notation = parse_notation(question.notation.value_or("jax"));
    if (!notation) return in("notation", notation.error());
    Setting setting;
    if (given) {
        auto array = parse_array(*given);
        if (!array) return in("array", array.error());
        setting = std::move(*array);
    } else if (*notation != Notation::jax) {
        return fail(Code::usage, fmt::format("{} does not say the element type and the shape: give --array f32[8,4]",
                                             name(*notation)));
    }
    const bool brings_mesh = *notation == Notation::sdy || *notation == Notation::hlo;
    if (!mesh.empty() || !brings_mesh) {
        auto parsed = parse_mesh(*notation, mesh);
        if (!parsed) return in("mesh", parsed.error());
        setting.mesh = std::move(*parsed);
    }
    return parse_layout(*notation, setting, text);
}

Result<Capabilities> capabilities_of(const std::string& backend, Index ranks, Index ranks_per_node) {
    if (ranks_per_node != 0 && backend != "mpi") return fail(Code::usage, "--ranks-per-node is for --backend mpi");
    const Index per_node = ranks_per_node == 0 ? ranks : std::min(ranks_per_node, ranks);
    if (backend.empty()) return Capabilities{};
    if (backend == "local") return Capabilities{.ranks_per_node = ranks};
    if (backend == "nccl") return Capabilities{.native_collectives = true};
    if (backend == "mpi")
        return Capabilities{
            .one_exchange = per_node == ranks, .native_collectives = per_node != ranks, .ranks_per_node = per_node};
    return fail(Code::usage, fmt::format("there is no backend '{}'; there are local, mpi and nccl", backend));
}

Result<Request> understand(const Question& question) {
    Request asked;
    RESHARD_TRY(const auto& problem, read_problem(question));
    auto whole = unified(problem);
    if (!whole) return in("source and target", whole.error());
    asked.problem = std::move(*whole);
    RESHARD_CHECK(read_options(question, asked.options));
    for (const std::string& text : question.first_steps) {
        RESHARD_TRY(auto& step, read_step(asked.problem.source.mesh, text));
        asked.options.first_steps.push_back(std::move(step));
    }
    return asked;
}

}  // namespace reshard::cli
