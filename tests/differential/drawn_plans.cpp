#include "differential/drawn_plans.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace reshard::test {

namespace {

/// The largest drawn layouts: devices times tile stays small enough to move element by element.
constexpr Index tile_max = Index{1} << 20;

void for_each_layout(Plan& plan, const std::function<void(Layout&)>& change) {
    change(plan.source);
    change(plan.target);
    for (Step& step : plan.steps) change(step.layout);
}

Index largest(const Layout& layout) { return device_count(layout) * tile_elements(layout); }

}  // namespace

Index Draw::below(Index count) { return std::uniform_int_distribution<Index>(0, count - 1)(engine_); }

Problem Draw::problem(Index devices_max) {
    for (;;) {
        Mesh mesh;
        Index devices = 1;
        const Index axes = 1 + below(6);
        for (Index i = 0; i < axes; ++i) {
            static constexpr std::array<Index, 10> sizes = {2, 2, 2, 3, 4, 4, 5, 6, 8, 16};
            const Index size = sizes[static_cast<std::size_t>(below(sizes.size()))];
            if (devices * size > devices_max) continue;
            devices *= size;
            mesh.axes.push_back({std::string(1, static_cast<char>('a' + i)), size});
        }
        const std::size_t rank = static_cast<std::size_t>(1 + below(4));
        const bool sums = once_in(4);
        const Index cut = below(3);
        const auto deal = [&] {
            Layout layout;
            layout.mesh = mesh;
            layout.dims.resize(rank);
            Index stride = devices;
            for (const Axis& axis : mesh.axes) {
                stride /= axis.size;
                // The place is mostly the same on both sides, so that most pairs have a common refinement.
                const Index at = once_in(12) ? below(3) : cut;
                Index minor = 1;
                if (at == 1 && axis.size % 2 == 0) minor = 2;
                if (at == 2 && axis.size > 4) minor = axis.size == 6 ? 3 : axis.size % 4 == 0 ? 4 : 1;
                for (const Atom part : {Atom{axis.size / minor, stride * minor}, Atom{minor, stride}}) {
                    const Index role = below(2 + 3 * static_cast<Index>(rank) + (sums ? 2 : 0));
                    if (role < 2) continue;
                    AtomList& list = role >= 2 + 3 * static_cast<Index>(rank)
                                         ? layout.unreduced
                                         : layout.dims[static_cast<std::size_t>((role - 2) / 3)].atoms;
                    list.insert(once_in(2) ? list.begin() : list.end(), part);
                }
            }
            for (Dim& dim : layout.dims) dim.atoms = canonical(dim.atoms);
            layout.unreduced = as_set(layout.unreduced);
            return layout;
        };
        Problem drawn{deal(), deal()};
        if (sums && once_in(2)) {
            // Most pairs deal the sum again; here it ends.
            drawn.target.unreduced.clear();
        }
        const bool even = !once_in(3);
        for (std::size_t i = 0; i < rank; ++i) {
            const Index least = std::lcm(shard_count(drawn.source.dims[i]), shard_count(drawn.target.dims[i]));
            const Index extent = even ? least * (1 + below(3)) : once_in(20) ? below(2) : 1 + below(60);
            drawn.source.dims[i].extent = drawn.target.dims[i].extent = extent;
        }
        if (largest(drawn.source) <= tile_max && largest(drawn.target) <= tile_max) return drawn;
    }
}

Layout Draw::neighbour(const Layout& layout) {
    Layout other = layout;
    std::vector<AtomList*> lists;
    for (Dim& dim : other.dims) lists.push_back(&dim.atoms);
    if (lists.empty() || once_in(3)) lists.push_back(&other.unreduced);
    AtomList& list = *one_of(lists);
    AtomList& second = *one_of(lists);
    const AtomList used = used_atoms(layout);  // not always a layout
    AtomList rest = disjoint(used) ? complement(used, device_count(layout)) : AtomList{};
    switch (below(8)) {
        case 0:
            if (!list.empty()) list.pop_back();
            break;
        case 1:
            if (!rest.empty()) list.push_back(one_of(rest));
            break;
        case 2:
            std::ranges::reverse(list);
            break;
        case 3:
            if (&list == &second || list.empty()) break;
            second.push_back(list.back());
            list.pop_back();
            break;
        case 4:
            std::swap(list, second);
            break;
        case 5:
            if (!list.empty() && !rest.empty()) list.back() = one_of(rest);
            break;
        case 6:  // a part of a digit moves
            if (&list == &second || list.empty() || list.back().size % 2 != 0) break;
            second.push_back({2, list.back().stride});
            list.back() = {list.back().size / 2, list.back().stride * 2};
            break;
        default:  // the same digits twice: not a layout, and both judges must refuse it
            if (once_in(4) && !list.empty()) second.push_back(list.back());
    }
    for (Dim& dim : other.dims) dim.atoms = canonical(dim.atoms);
    other.unreduced = as_set(other.unreduced);
    return other;
}

Plan Draw::walk(const Layout& source, std::size_t length) {
    Plan plan{source, source, {}};
    for (int tries = 0; tries < 40 && plan.steps.size() < length; ++tries) {
        Layout next = neighbour(plan.target);
        if (once_in(2)) next = neighbour(next);
        if (once_in(4)) next = neighbour(next);
        if (!validate(next) || largest(next) > tile_max) continue;
        std::vector<StepKind> kinds;
        for (const StepKind kind : all_step_kinds)
            if (type_step(plan.target, {kind, next})) kinds.push_back(kind);
        if (kinds.empty()) continue;
        plan.steps.push_back({one_of(kinds), next});
        plan.target = next;
    }
    return plan;
}

Options Draw::options(const Problem& problem) {
    Options options;
    options.vocabulary = once_in(2) ? Vocabulary::all : Vocabulary::collectives;
    options.objective = once_in(3) ? Objective::time : once_in(2) ? Objective::bytes : Objective::steps;
    if (once_in(2)) {
        Level node, network;
        node.name = "node";
        node.devices = Index{1} << (1 + below(3));
        node.latency_ps = 1'000'000;
        node.bytes_per_second = 100'000'000'000;
        network.name = "network";
        network.latency_ps = 1'000'000 * (1 + below(20));
        network.bytes_per_second = 1'000'000'000 * (1 + below(50));
        options.machine = {"nodes", {node, network}, 50'000'000'000};
    }
    const Index floor = std::max(tile_bytes(problem.source), tile_bytes(problem.target));
    switch (below(5)) {
        case 0:
            options.limits.peak_bytes_max = floor;
            break;
        case 1:
            options.limits.peak_bytes_max = floor + below(floor + 1);
            break;
        case 2:
            options.limits.memory.footprint_bytes_max = 2 * floor + below(floor + 1);
            break;
        default:
            break;
    }
    return options;
}

void Draw::mutate_extent(Plan& plan) {
    if (plan.source.dims.empty()) return;
    const auto dim = static_cast<std::size_t>(below(static_cast<Index>(plan.source.dims.size())));
    const Index extent = plan.source.dims[dim].extent + below(5) - 2;
    if (extent < 0) return;
    for_each_layout(plan, [&](Layout& layout) {
        if (dim < layout.dims.size()) layout.dims[dim].extent = extent;
    });
}

void Draw::mutate(Plan& plan) {
    if (plan.steps.empty() || once_in(10)) {
        Layout& end = once_in(2) ? plan.source : plan.target;
        end = neighbour(end);
        return;
    }
    const auto which = static_cast<std::ptrdiff_t>(below(static_cast<Index>(plan.steps.size())));
    Step& step = plan.steps[static_cast<std::size_t>(which)];
    switch (below(8)) {
        case 0:
            step.kind = all_step_kinds[static_cast<std::size_t>(below(all_step_kinds.size()))];
            break;
        case 1:
            plan.steps.erase(plan.steps.begin() + which);
            break;
        case 2:
            std::swap(step, plan.steps.back());
            break;
        case 3:
            plan.steps.insert(plan.steps.begin() + which, Step(step));
            break;
        case 4:
            mutate_extent(plan);
            break;
        case 5:  // the change goes on to the end, so that the plan arrives
            step.layout = neighbour(step.layout);
            plan.steps.erase(plan.steps.begin() + which + 1, plan.steps.end());
            plan.target = plan.steps.back().layout;
            break;
        default:
            step.layout = neighbour(step.layout);
    }
}

Plan Draw::mutant(Plan plan) {
    const Plan before = plan;
    do {
        mutate(plan);
    } while (plan == before || once_in(4));
    return plan;
}

}  // namespace reshard::test
