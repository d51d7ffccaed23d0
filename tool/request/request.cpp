#include "tool/request/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "files/formats/zarr_elements.hpp"
#include "reshard/padding.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/tables/capabilities.hpp"
#include "tool/console/exit.hpp"

namespace reshard::cli {
namespace {

// A layout that fails without a mesh most often fails for want of one.
template <class T>
Result<T> on_mesh(const std::string& mesh, Result<T> result) {
    if (!result && mesh.empty() && (result.error().code == Code::layout || result.error().code == Code::mesh))
        result.error().message += "; no mesh was given: --mesh x=2,y=3";
    return result;
}

Result<Problem> read_foreign_problem(const Question& question) {
    RESHARD_TRY(auto& source, in("source", read_layout(question, question.mesh, question.array, question.source)));
    const auto& target_array = question.target_array ? question.target_array : question.array;
    RESHARD_TRY(auto& target, in("target", read_layout(question, question.target_mesh.value_or(question.mesh),
                                                       target_array, question.target)));
    share_mesh(source, target);  // notations without names get them from both ends
    return Problem{std::move(source), std::move(target)};
}

Result<Problem> read_problem(const Question& question) {
    if (question.notation) return read_foreign_problem(question);
    RESHARD_TRY(const auto& mesh, in("mesh", parse_mesh(question.mesh)));
    RESHARD_TRY(const auto& target_mesh,
                question.target_mesh ? in("target mesh", parse_mesh(*question.target_mesh)) : Result<Mesh>(mesh));
    RESHARD_TRY(auto& source, on_mesh(question.mesh, in("source", parse_layout(mesh, question.source))));
    RESHARD_TRY(auto& target, on_mesh(question.target_mesh.value_or(question.mesh),
                                      in("target", parse_layout(target_mesh, question.target))));
    return Problem{std::move(source), std::move(target)};
}

// 1,0,2
Result<std::vector<Index>> parse_order(const std::string& text) {
    std::vector<Index> order;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        Index dim = -1;
        const auto read = std::from_chars(text.data() + begin, text.data() + end, dim);
        if (read.ec != std::errc() || read.ptr != text.data() + end || dim < 0)
            return fail(Code::syntax, fmt::format("'{}' is no order of dimensions; 1,0,2 is one", text.substr(0, 40)));
        order.push_back(dim);
        begin = end + 1;
    }
    return order;
}

// NaN and the infinities as zarr spells them.
std::string spelled_as_zarr(const std::string& text) {
    for (const auto& [given, spelled] :
         {std::pair("nan", "NaN"), {"inf", "Infinity"}, {"-inf", "-Infinity"}, {"infinity", "Infinity"}})
        if (text == given) return spelled;
    return text;
}

// The bytes of an element, from text as JSON or zarr writes it.
Result<std::vector<std::byte>> parse_element(DType dtype, const std::string& text) {
    const files::Json json = files::Json::parse(text, nullptr, false);
    const auto bytes =
        files::fill_bytes({dtype, {}, false}, json.is_discarded() ? files::Json(spelled_as_zarr(text)) : json);
    if (!bytes)
        return fail(Code::mismatch, fmt::format("'{}' is no {}; an element is written 0, -1.5, true, nan, -inf, "
                                                "0x7fc0 (its bits) or [0,1] (a complex number)",
                                                text.substr(0, 40), name(dtype)));
    const auto* const first = reinterpret_cast<const std::byte*>(bytes->data());
    return std::vector<std::byte>(first, first + bytes->size());
}

// A machine's text has lines; the name of one that is built in has none.
Result<Machine> read_machine(const std::string& text) {
    return text.find('\n') != std::string::npos ? parse_machine(text) : make_machine(text);
}

template <class T, class Parse>
Result<void> read(const char* name, const std::optional<std::string>& text, const Parse& parse, T& into) {
    if (!text) return {};
    RESHARD_ASSIGN(into, in(name, parse(*text)));
    return {};
}

// Reads an option by the type of its field in Options.
Result<void> read(const char* name, const std::optional<std::string>& text, Objective& into) {
    return read(name, text, parse_objective, into);
}
Result<void> read(const char* name, const std::optional<std::string>& text, Vocabulary& into) {
    return read(name, text, parse_vocabulary, into);
}
Result<void> read(const char* name, const std::optional<std::string>& text, Machine& into) {
    return read(name, text, read_machine, into);
}
Result<void> read(const char* name, const std::optional<std::string>& text, std::optional<Index>& into) {
    return read(name, text, parse_bytes, into);
}
template <class T>
Result<void> read(const char*, const T& given, T& into) {
    into = given;
    return {};
}

// `kind layout`: how a plan writes its steps.
Result<Step> read_step(const Mesh& mesh, const std::string& text) {
    const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t space = std::min(text.find(' ', begin), text.size());
    const std::string_view word = std::string_view(text).substr(begin, space - begin);
    RESHARD_TRY(const auto& kind, in("first step", parse_step_kind(word)));
    RESHARD_TRY(auto& layout, in("first step", parse_layout(mesh, std::string_view(text).substr(space))));
    return Step{kind, std::move(layout)};
}

}  // namespace

Result<void> read_options(const QuestionOptions& question, Options& options) {
#define RESHARD_OPTION(kind, name, member, ...) RESHARD_CHECK(read(#name, question.name, options.member));
#define RESHARD_OTHER_OPTION(...)
#include "src/tables/options.def"
    return {};
}

bool brings_mesh(Notation notation) { return notation == Notation::sdy || notation == Notation::hlo; }

Result<Layout> read_layout(const Question& question, const std::string& mesh, const std::optional<std::string>& given,
                           const std::string& text) {
    RESHARD_TRY(const auto& notation, in("notation", parse_notation(question.notation.value_or("jax"))));
    NotationContext setting;
    if (given) {
        RESHARD_ASSIGN(setting, in("array", parse_array(*given)));
    } else if (notation != Notation::jax) {
        return fail(Code::usage, fmt::format("{} does not say the element type and the shape: give --array f32[8,4]",
                                             name(notation)));
    }
    if (!mesh.empty() || !brings_mesh(notation)) {
        RESHARD_ASSIGN(setting.mesh, in("mesh", parse_mesh(notation, mesh)));
    }
    auto layout = parse_layout(notation, setting, text);
    return brings_mesh(notation) ? layout : on_mesh(mesh, std::move(layout));
}

Result<Capabilities> capabilities_of(const std::string& backend, Index ranks, Index ranks_per_node) {
    if (ranks_per_node != 0 && backend != "mpi") return fail(Code::usage, "--ranks-per-node is for --backend mpi");
    const Index per_node = ranks_per_node == 0 ? ranks : std::min(ranks_per_node, ranks);
    if (backend.empty()) return Capabilities{};
#define RESHARD_BACKEND(name, ...) \
    if (backend == #name) return tables::name##_capabilities(per_node == ranks, per_node);
#include "src/tables/capabilities.def"
    return fail(Code::usage, fmt::format("there is no backend '{}'; there are local, mpi and nccl", backend));
}

Index rank_count(const Problem& problem) {
    return std::max(world_size(problem.source.mesh), world_size(problem.target.mesh));
}

// As to_common_shape. Its error names the option that other extents need.
Result<Problem> as_one_shape(const Problem& ends, const Question& question) {
    auto made = to_common_shape(ends);
    const bool extents = ends.source.dims.size() == ends.target.dims.size() && !question.pad;
    if (!made && extents && made.error().code == Code::mismatch && shape(ends.source) != shape(ends.target))
        made.error().message += "; a move pads or strips if the option pad has a value";
    return made;
}

Result<Request> understand(const Question& question) {
    Request asked;
    RESHARD_ASSIGN(asked.written, read_problem(question));
    Problem ends = asked.written;
    if (question.permute) {
        RESHARD_ASSIGN(asked.changes.permute, in("permute", parse_order(*question.permute)));
        RESHARD_ASSIGN(ends.source, in("permute", permuted(ends.source, asked.changes.permute)));
        if (!question.pad && shape(ends.source) != shape(ends.target))
            return fail(Code::mismatch, fmt::format("permute: the source is {} in this order, and the target is {}",
                                                    format(ends.source), format(ends.target)));
    }
    if (question.pad) {
        RESHARD_ASSIGN(asked.changes.fill, in("pad", parse_element(ends.target.dtype, *question.pad)));
        RESHARD_ASSIGN(ends, in("pad", common_extents(ends.source, ends.target)));
    }
    RESHARD_ASSIGN(asked.problem, in("source and target", as_one_shape(ends, question)));
    asked.note = note_on(ends);
    RESHARD_CHECK(read_options(question, asked.options));
    asked.changes.cast = asked.options.cast;
    for (const std::string& text : question.first_steps) {
        RESHARD_TRY(auto& step, read_step(asked.problem.source.mesh, text));
        asked.options.first_steps.push_back(std::move(step));
    }
    return asked;
}

}  // namespace reshard::cli
