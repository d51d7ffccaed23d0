#include "reshard/emit/program.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/emit/stages.hpp"

namespace reshard {

std::string_view name(OperationKind kind) {
    constexpr std::array<std::string_view, 14> names = {
        "reshape", "transpose", "reorder",    "slice",      "update_slice",   "mask",       "scale",
        "cast",    "reduce",    "all_gather", "all_to_all", "reduce_scatter", "all_reduce", "permute"};
    return names[static_cast<std::size_t>(kind)];
}

bool is_collective(OperationKind kind) { return kind >= OperationKind::all_gather; }

Index received_elements(const Operation& operation) {
    Index input = 1;
    Index output = 1;
    for (const Index extent : operation.input) input *= extent;
    for (const Index extent : operation.output) output *= extent;
    const Index size = operation.groups.empty() ? 1 : static_cast<Index>(operation.groups.front().size());
    switch (operation.kind) {
        case OperationKind::all_gather:
            return (size - 1) * input;
        case OperationKind::all_to_all:
            return input / size * (size - 1);
        case OperationKind::reduce_scatter:
            return (size - 1) * output;
        case OperationKind::all_reduce:
            return scale_up(2 * input, size - 1, size);
        case OperationKind::permute:
            return std::ranges::all_of(operation.pairs, [](const SourceTargetPair& p) { return p.source == p.target; })
                       ? 0
                       : input;
        default:
            return 0;
    }
}

std::optional<std::vector<std::string>> whole_axes(const Mesh& mesh, const AtomList& digits) {
    std::vector<std::string> axes;
    for (const Atom& digit : digits) {
        const auto names = names_of(mesh, digit);
        if (!names) return std::nullopt;
        for (const SubAxis& one : *names) {
            if (*atom_of(mesh, one) != *atom_of(mesh, {one.axis})) return std::nullopt;
            axes.push_back(one.axis);
        }
    }
    return axes;
}

std::string format(const Operation& operation) {
    std::string text = fmt::format("{} [{}]", name(operation.kind), fmt::join(operation.input, ","));
    if (operation.output != operation.input) text += fmt::format(" -> [{}]", fmt::join(operation.output, ","));
    if (!operation.permutation.empty()) text += fmt::format(" by [{}]", fmt::join(operation.permutation, ","));
    for (const Interval& run : operation.runs) text += fmt::format(" {}:{}", run.begin, run.end);
    if (!operation.starts.empty()) text += fmt::format(" at {}", operation.starts);
    if (!operation.groups.empty()) text += fmt::format(" in {}", operation.groups);
    for (const SourceTargetPair& pair : operation.pairs) text += fmt::format(" {}>{}", pair.source, pair.target);
    if (operation.kind == OperationKind::mask) text += fmt::format(" on {}", operation.keeps);
    if (operation.kind == OperationKind::cast) text += fmt::format(" to {}", name(operation.dtype));
    if (operation.factor != Scale{}) text += fmt::format(" * {} / {}", operation.factor.times, operation.factor.over);
    constexpr std::array<std::string_view, 5> reductions = {"", " (sum)", " (max)", " (min)", " (prod)"};
    return text.append(reductions[static_cast<std::size_t>(operation.combine)]);
}

std::string format(const TileProgram& program) {
    std::string text = fmt::format("mesh {}\nsource {}\n", format(program.source.mesh), format(program.source));
    for (const Operation& operation : program.operations) text += format(operation) + "\n";
    return text + fmt::format("target {}\n", format(program.target));
}

Result<void> has_program(const Problem& asked) {
    for (const Layout* end : {&asked.source, &asked.target}) {
        RESHARD_CHECK(validate(*end));
        RESHARD_CHECK(has_equal_tiles(*end));
    }
    if (same_devices(asked.source.mesh, asked.target.mesh)) return {};
    return fail(Code::unsupported,
                fmt::format("the source stands on mesh {} and the target on mesh {}; a tile program needs the same "
                            "devices at both ends",
                            format(asked.source.mesh), format(asked.target.mesh)));
}

}  // namespace reshard
