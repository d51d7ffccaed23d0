#include "report/steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reshard/text.hpp"

namespace reshard::cli {
namespace {

// Counting the tiles that move asks every device; beyond this many the sentence is not worth the wait.
constexpr Index devices_counted_max = 1 << 16;

std::string spelled(const SubAxis& axis) {
    return axis.size == 0 ? axis.axis : fmt::format("{}:({}){}", axis.axis, axis.before, axis.size);
}

std::string list_change(const Mesh& before_mesh, const AtomList& before, const Mesh& after_mesh,
                        const AtomList& after) {
    if (const auto gone = after_prefix(before, after)) return fmt::format("-{}", axes(before_mesh, *gone));
    if (const auto come = after_prefix(after, before)) return fmt::format("+{}", axes(after_mesh, *come));
    return fmt::format("{} to {}", axes(before_mesh, before), axes(after_mesh, after));
}

// An avg is a sum and one factor.
std::string factor(Index before, Index after) {
    if (before == after) return "";
    if (before > after) return fmt::format(" (sum, then / {})", before / after);
    return fmt::format(" (x {})", after / before);
}

std::string dims_change(const Layout& before, const Layout& after) {
    std::vector<std::string> parts;
    for (std::size_t d = 0; d < before.dims.size() && d < after.dims.size(); ++d) {
        const AtomList& was = before.dims[d].atoms;
        const AtomList& is = after.dims[d].atoms;
        if (before.dims[d] != after.dims[d] && was == is) parts.push_back(fmt::format("dim {} recut", d));
        if (was != is) parts.push_back(fmt::format("dim {} {}", d, list_change(before.mesh, was, after.mesh, is)));
    }
    if (!same_summands(before, after)) {
        const Reduction reduction = before.unreduced.empty() ? after.reduction : before.reduction;
        parts.push_back(fmt::format("{} {}", reduction == Reduction::sum ? "U" : name(reduction),
                                    list_change(before.mesh, before.unreduced, after.mesh, after.unreduced)));
        parts.back() += factor(divisor(before), divisor(after));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string tiles_moved(const Layout& before, const Layout& after) {
    const Index devices = world_size(before.mesh);
    if (devices > devices_counted_max) return "";
    Index moved = 0;
    for (Index device = 0; device < devices; ++device) {
        moved += tile(before, device) != tile(after, device) || summand(before, device) != summand(after, device);
    }
    return fmt::format("{} of {} tiles move", moved, devices);
}

}  // namespace

std::string axes(const Mesh& mesh, const AtomList& atoms) {
    std::vector<std::string> names;
    for (const Atom& atom : atoms) {
        if (const auto known = names_of(mesh, atom)) {
            for (const SubAxis& axis : *known) names.push_back(spelled(axis));
        } else {
            names.push_back(fmt::format("/{}%{}", atom.stride, atom.size));
        }
    }
    return names.size() == 1 ? names.front() : fmt::format("({})", fmt::join(names, ","));
}

std::string changes(const Layout& before, const Step& step) {
    if (step.kind == StepKind::permute) return tiles_moved(before, step.layout);
    if (step.kind == StepKind::cast) return fmt::format("{} to {}", name(before.dtype), name(step.layout.dtype));
    if (step.kind == StepKind::view) return fmt::format("as {}", fmt::join(shape(step.layout), "x"));
    if (!same_order(before.mesh, step.layout.mesh)) return fmt::format("to mesh {}", format(step.layout.mesh));
    return dims_change(before, step.layout);
}

Index messages(const Verdict& verdict) {
    Index sum = 0;
    for (const Move& move : verdict.moves) sum = saturating_add(sum, move.messages);
    return sum;
}

std::string kinds(const Plan& plan) {
    std::vector<std::string_view> names;
    for (const Step& step : plan.steps) names.push_back(name(step.kind));
    return names.empty() ? "nothing to do" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace reshard::cli
