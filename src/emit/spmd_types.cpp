// A plan as typed collectives of the Python package spmd_types. Each changes the type of one mesh axis.
#include <algorithm>

#include <fmt/ranges.h>

#include "reshard/emit/write.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/emit/text.hpp"

namespace reshard {

namespace {

using Axes = std::vector<std::string>;

struct Change {
    std::string axis;
    std::string before;
    std::string after;
};

// The axes that cut each dimension, major to minor, and the axes that number summands.
struct Cuts {
    std::vector<Axes> dims;
    Axes summands;

    [[nodiscard]] std::string type(const std::string& axis) const {
        for (std::size_t d = 0; d < dims.size(); ++d)
            if (std::ranges::find(dims[d], axis) != dims[d].end()) return fmt::format("spmd.S({})", d);
        return std::ranges::find(summands, axis) != summands.end() ? "spmd.P" : "spmd.R";
    }
};

Result<Cuts> cuts_of(const Layout& layout) {
    Cuts cuts;
    if (!layout.unreduced.empty() && layout.reduction != Reduction::sum)
        return fail(Code::unsupported, "it has summands that are not added, and typed collectives only add");
    for (const Dim& dim : layout.dims) {
        if (!divides(dim)) return fail(Code::unsupported, "it has a dimension that is not cut into equal blocks");
        const auto axes = whole_axes(layout.mesh, dim.atoms);
        if (!axes) return fail(Code::unsupported, "it cuts a dimension by a part of a mesh axis");
        cuts.dims.push_back(*axes);
    }
    const auto axes = whole_axes(layout.mesh, layout.unreduced);
    if (!axes) return fail(Code::unsupported, "it numbers summands by a part of a mesh axis");
    cuts.summands = *axes;
    return cuts;
}

// The axes that a step changes. Each is the minor axis of its dimension when its turn comes.
std::vector<Change> changes_of(const Cuts& before, const Cuts& after) {
    Axes axes = before.summands;
    for (const Axes& dim : after.dims) axes.insert(axes.end(), dim.begin(), dim.end());
    for (const Axes& dim : before.dims) axes.insert(axes.end(), dim.rbegin(), dim.rend());
    // A summed axis that cuts a dimension afterwards is listed twice. It counts at the dimension's place.
    std::vector<Change> changes;
    for (const std::string& axis : axes) {
        const auto same = [&](const Change& one) { return one.axis == axis; };
        std::erase_if(changes, same);
        if (before.type(axis) != after.type(axis)) changes.push_back({axis, before.type(axis), after.type(axis)});
    }
    return changes;
}

Result<std::string> lines_of(const Layout& before, const Step& step) {
    RESHARD_TRY(const auto& first, cuts_of(before));
    RESHARD_TRY(const auto& last, cuts_of(step.layout));
    const std::vector<Change> changes = changes_of(first, last);
    const bool splits = step.kind == StepKind::slice || step.kind == StepKind::all_gather ||
                        step.kind == StepKind::reduce_scatter;  // into one collective for each axis, for equal bytes
    const bool typed = splits || step.kind == StepKind::all_to_all || step.kind == StepKind::all_reduce;
    if (!typed) return fail(Code::unsupported, "it changes no type of a mesh axis");
    if (!splits && changes.size() != 1)
        return fail(Code::unsupported, fmt::format("it changes {} mesh axes together", changes.size()));
    std::string lines;
    for (const Change& change : changes)
        lines += fmt::format("    tile = spmd.redistribute(tile, mesh.get_group(\"{}\"), src={}, dst={})\n",
                             change.axis, change.before, change.after);
    return lines;
}

}  // namespace

Result<std::string> spmd_types_text(const Plan& plan) {
    const Mesh& mesh = plan.source.mesh;
    if (!mesh.devices.in_order() || !(mesh == plan.target.mesh))
        return fail(Code::unsupported, "typed collectives need one mesh at both ends, whose devices are in order");
    std::string body;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const auto lines = lines_of(layout_before(plan, i), plan.steps[i]);
        if (!lines)
            return fail(
                lines.error().code,
                fmt::format("step {} of the plan ({}) is no typed collective, which changes one whole mesh axis: "
                            "{}; `torch` can say every plan",
                            i + 1, name(plan.steps[i].kind), lines.error().message));
        body += *lines;
    }
    std::vector<Index> sizes;
    Axes names;
    for (const Axis& axis : mesh.axes) {
        sizes.push_back(axis.size);
        names.push_back(fmt::format("\"{}\"", axis.name));
    }
    return fmt::format(
        "\"\"\"{}.\n\nRank i is device i. Written by `reshard emit --to spmd_types`.\"\"\"\n\n"
        "import spmd_types as spmd\nfrom torch.distributed.device_mesh import init_device_mesh\n\n\n"
        "def connect(device=\"cuda\"):\n    \"\"\"The mesh of `move`, made once, by all ranks together.\"\"\"\n"
        "    return init_device_mesh(device, {}, mesh_dim_names=({}{}))\n\n\n"
        "def move(tile, mesh):\n    \"\"\"This rank's tile, {} to {}.\"\"\"\n{}    return tile\n",
        headline({plan.source, plan.target, {}}), python_tuple(sizes), fmt::join(names, ", "),
        names.size() == 1 ? "," : "", shape_text(plan.source.dtype, extents_of(plan.source)),
        shape_text(plan.target.dtype, extents_of(plan.target)), body);
}

}  // namespace reshard
