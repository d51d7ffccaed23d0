#include "src/emit/text.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"

namespace reshard {

namespace {

constexpr std::size_t columns = 100;  // of a list that is broken

constexpr std::array<std::string_view, 3> framework_names = {"jax", "stablehlo", "torch"};

AtomList axes_of(const Mesh& mesh) {
    AtomList atoms;
    for (const Axis& axis : mesh.axes) atoms.push_back(*atom_of(mesh, {axis.name}));
    return atoms;
}

}  // namespace

std::string_view name(Framework framework) { return framework_names[static_cast<std::size_t>(framework)]; }

Result<Framework> parse_framework(std::string_view text) {
    for (const Framework framework : all_frameworks)
        if (text == name(framework)) return framework;
    return fail(Code::syntax, fmt::format("'{}' is no framework: jax, stablehlo or torch; spmd_types is one for plans",
                                          text.substr(0, 40)));
}

Result<std::string> write(const TileProgram& program, Framework framework) {
    switch (framework) {
        case Framework::jax:
            return jax_text(program);
        case Framework::stablehlo:
            return stablehlo_text(program);
        case Framework::torch:
            break;
    }
    return torch_text(program);
}

Result<Mesh> whole_axes_mesh(const TileProgram& program) {
    const Mesh& mesh = program.source.mesh;
    if (!same_order(mesh, program.target.mesh))
        return fail(Code::unsupported, "the two ends list the devices in different orders, which one mesh cannot say");
    std::vector<Index> borders;
    const AtomList axes = axes_of(mesh);
    for (const Atom& axis : axes) append_borders(std::span(&axis, 1), borders);
    for (const Layout* end : {&program.source, &program.target})
        append_borders(in_digits(*end).value_or(*end), borders);
    const auto digits = refinement(std::move(borders));
    if (!digits) return fail(Code::unsupported, "the parts of axes that the two ends use have no common refinement");
    Mesh made({}, mesh.devices);
    for (std::size_t i = 0; i < axes.size(); ++i) {
        AtomList parts;
        std::ranges::copy_if(*digits, std::back_inserter(parts), [&](Atom digit) { return is_within(digit, axes[i]); });
        if (parts.size() < 2) {
            made.axes.push_back(mesh.axes[i]);
            continue;
        }
        for (std::size_t k = 0; k < parts.size(); ++k) {
            std::string part = fmt::format("{}_{}", mesh.axes[i].name, k + 1);
            while (std::ranges::find(mesh.axes, part, &Axis::name) != mesh.axes.end()) part += '_';
            made.axes.push_back({std::move(part), parts[k].size});
        }
    }
    return made;
}

std::string headline(const TileProgram& program) {
    const bool one_mesh = program.source.mesh == program.target.mesh;
    return fmt::format("{} to {} on the mesh {}{}", format(program.source), format(program.target),
                       format(program.source.mesh), one_mesh ? "" : " and " + format(program.target.mesh));
}

std::string python_start(const AtomList& digits, Index part, std::string_view position) {
    std::vector<std::string> terms;
    Index weight = part * combinations(digits);
    for (const Atom& digit : digits) {
        weight /= digit.size;
        std::string term(position);
        if (digit.stride > 1) term += fmt::format(" // {}", digit.stride);
        term += fmt::format(" % {}", digit.size);
        if (weight > 1) term += fmt::format(" * {}", weight);
        terms.push_back(std::move(term));
    }
    return terms.empty() ? "0" : fmt::format("{}", fmt::join(terms, " + "));
}

std::string listed(const std::vector<Index>& numbers) { return fmt::format("{}", fmt::join(numbers, ", ")); }

std::string python_tuple(const std::vector<Index>& numbers) {
    return fmt::format("({}{})", listed(numbers), numbers.size() == 1 ? "," : "");
}

std::string python_runs(const std::vector<Interval>& runs) {
    std::vector<std::string> all;
    for (const Interval& run : runs) all.push_back(fmt::format("({}, {})", run.begin, run.end));
    return fmt::format("{}{}", fmt::join(all, ", "), all.size() == 1 ? "," : "");
}

std::string python_groups(const std::vector<std::vector<Index>>& groups, std::string_view indent) {
    std::string text = "[";
    std::size_t line = indent.size();
    for (std::size_t i = 0; i < groups.size(); ++i) {
        const std::string group = fmt::format("[{}]{}", listed(groups[i]), i + 1 < groups.size() ? ", " : "");
        if (i > 0 && line + group.size() > columns) {
            text.pop_back();
            text += fmt::format("\n{}", indent);
            line = indent.size();
        }
        text += group;
        line += group.size();
    }
    return text + "]";
}

std::string shape_text(DType dtype, const std::vector<Index>& shape) {
    return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

std::string python_views(const std::vector<Operation>& operations, std::size_t& next, std::string_view transpose) {
    std::string text;
    for (; next < operations.size(); ++next) {
        const Operation& operation = operations[next];
        if (operation.kind == OperationKind::reshape)
            text += operation.output.empty() ? ".reshape(())" : fmt::format(".reshape({})", listed(operation.output));
        else if (operation.kind == OperationKind::transpose)
            text += fmt::format(".{}({})", transpose, fmt::join(operation.permutation, ", "));
        else
            break;
    }
    return text;
}

}  // namespace reshard
