// Builds steps from the table of steps in the docs, on axis names. It does not use the library's typing rules.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <sstream>

#include "support/generators.hpp"

namespace reshard::test {

namespace {

/// The parts of axes that no dimension and no sum uses.
std::vector<SubAxis> unused_parts(const Spec& spec) {
    std::vector<SubAxis> unused;
    for (const Axis& axis : spec.mesh) {
        std::vector<SubAxis> used;
        const auto collect = [&](const std::vector<SubAxis>& axes) {
            for (const SubAxis& part : axes)
                if (part.axis == axis.name) used.push_back(part);
        };
        for (const SpecDim& dim : spec.dims) collect(dim.axes);
        collect(spec.unreduced);
        std::ranges::sort(used, {}, &SubAxis::before);
        Index before = 1;
        for (const SubAxis& part : used) {
            if (part.size == 1) continue;
            if (part.before > before) unused.push_back({axis.name, before, part.before / before});
            before = part.before * part.size;
        }
        if (before < axis.size) unused.push_back({axis.name, before, axis.size / before});
    }
    return unused;
}

template <class T>
std::vector<T> shuffled(std::vector<T> list) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[*between<std::size_t>(0, i)]);
    return list;
}

/// Takes each part with probability one half, and at least one if the list is not empty.
std::vector<SubAxis> some(const std::vector<SubAxis>& list) {
    std::vector<SubAxis> taken;
    if (list.empty()) return taken;
    const auto sure = *between<std::size_t>(0, list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
        if (i == sure || *between(0, 2) == 1) taken.push_back(list[i]);
    return taken;
}

void erase(std::vector<SubAxis>& list, const std::vector<SubAxis>& gone) {
    std::erase_if(list, [&](const SubAxis& axis) { return std::ranges::find(gone, axis) != gone.end(); });
}

/// Appends each part to the minor end of one of `dims`, in any order.
void append(Spec& spec, const std::vector<SubAxis>& parts, const std::vector<std::size_t>& dims) {
    for (const SubAxis& part : shuffled(parts))
        spec.dims[dims[*between<std::size_t>(0, dims.size())]].axes.push_back(part);
}

std::vector<std::size_t> all_dims(const Spec& spec) {
    std::vector<std::size_t> dims(spec.dims.size());
    std::iota(dims.begin(), dims.end(), std::size_t{0});
    return dims;
}

/// Cuts a suffix off some dimensions, and adds these dimensions to `cut`.
std::vector<SubAxis> pop_suffixes(Spec& spec, std::vector<std::size_t>& cut) {
    std::vector<SubAxis> popped;
    for (std::size_t i = 0; i < spec.dims.size(); ++i) {
        auto& axes = spec.dims[i].axes;
        const auto keep = *between<std::size_t>(0, axes.size() + 1);
        if (keep == axes.size()) continue;
        popped.insert(popped.end(), axes.begin() + static_cast<std::ptrdiff_t>(keep), axes.end());
        axes.resize(keep);
        cut.push_back(i);
    }
    return popped;
}

/// Exchanges parts of equal size between their places, and reorders each dimension.
void permute(Spec& spec) {
    std::map<Index, std::vector<SubAxis>> pool;
    std::vector<std::vector<SubAxis>*> lists;
    for (SpecDim& dim : spec.dims) lists.push_back(&dim.axes);
    lists.push_back(&spec.unreduced);
    for (const SubAxis& part : unused_parts(spec)) pool[part.size].push_back(part);
    for (const auto* list : lists)
        for (const SubAxis& part : *list) pool[part.size].push_back(part);
    for (auto& [size, parts] : pool) parts = shuffled(parts);
    for (auto* list : lists) {
        for (SubAxis& part : *list) {
            auto& parts = pool[part.size];
            part = parts.back();
            parts.pop_back();
        }
        *list = shuffled(*list);
    }
}

/// The layout after a step of `kind`; the same layout if no such step exists.
Spec after_step(StepKind kind, const Spec& before) {
    Spec after = before;
    std::vector<std::size_t> cut;
    const auto dims = all_dims(after);
    switch (kind) {
        case StepKind::slice:
            if (!dims.empty()) append(after, some(unused_parts(before)), dims);
            break;
        case StepKind::all_gather:
            pop_suffixes(after, cut);
            break;
        case StepKind::all_to_all: {
            const auto moved = pop_suffixes(after, cut);
            std::vector<std::size_t> rest;
            std::ranges::set_difference(dims, cut, std::back_inserter(rest));
            if (rest.empty()) return before;
            append(after, moved, rest);
            break;
        }
        case StepKind::permute:
            permute(after);
            break;
        case StepKind::reduce_scatter: {
            const auto parts = some(before.unreduced);
            if (dims.empty()) return before;
            erase(after.unreduced, parts);
            append(after, parts, dims);
            break;
        }
        case StepKind::all_reduce:
            erase(after.unreduced, some(before.unreduced));
            break;
        case StepKind::zero_fill: {
            auto parts = *between(0, 2) == 0 ? some(unused_parts(before)) : std::vector<SubAxis>{};
            const auto popped = parts.empty() || *between(0, 2) == 0 ? pop_suffixes(after, cut) : parts;
            if (popped != parts) parts.insert(parts.end(), popped.begin(), popped.end());
            after.unreduced.insert(after.unreduced.end(), parts.begin(), parts.end());
            break;
        }
        case StepKind::exchange: {
            std::vector<SubAxis> parts = unused_parts(before);
            for (SpecDim& dim : after.dims) {
                parts.insert(parts.end(), dim.axes.begin(), dim.axes.end());
                dim.axes.clear();
            }
            if (!dims.empty()) append(after, some(parts), dims);
            break;
        }
        case StepKind::view:
        case StepKind::cast:
            break;
    }
    return after;
}

/// Sets extents that all the layouts divide. False if a layout is then too large.
bool set_common_extents(const std::vector<Spec*>& specs, const std::vector<Index>& factors) {
    for (std::size_t i = 0; i < specs[0]->dims.size(); ++i) {
        Index extent = factors[i];
        for (const Spec* spec : specs) extent = std::lcm(extent, shards(spec->dims[i]));
        for (Spec* spec : specs) spec->dims[i].extent = extent;
    }
    return std::ranges::all_of(
        specs, [](const Spec* spec) { return devices(*spec) * tile_size(*spec) <= device_elements_max; });
}

std::vector<Index> draw_factors(std::size_t rank) {
    std::vector<Index> factors;
    for (std::size_t i = 0; i < rank; ++i) factors.push_back(*rc::gen::element<Index>(1, 1, 2, 3));
    return factors;
}

}  // namespace

rc::Gen<Pair> typed_pairs(StepKind kind) {
    const auto draw = rc::gen::exec([kind] {
        Spec before = *layouts({.uneven = false, .devices_max = 48});
        Pair pair{before, after_step(kind, before)};
        if (!set_common_extents({&pair.source, &pair.target}, draw_factors(before.dims.size())))
            pair.target = pair.source;
        return pair;
    });
    return rc::gen::suchThat(draw, [](const Pair& pair) { return layout_of(pair.source) != layout_of(pair.target); });
}

rc::Gen<Walk> walks() {
    const auto draw = rc::gen::exec([] {
        Walk walk;
        walk.source = *layouts({.uneven = false, .devices_max = 48});
        const auto length = *between<std::size_t>(1, 6);
        const Spec* last = &walk.source;
        walk.steps.reserve(length);
        for (std::size_t i = 0; i < length; ++i) {
            const StepKind kind =
                *rc::gen::elementOf(std::vector<StepKind>(kinds_of_one_shape.begin(), kinds_of_one_shape.end()));
            Spec after = after_step(kind, *last);
            if (layout_of(after) == layout_of(*last)) continue;
            walk.steps.emplace_back(kind, std::move(after));
            last = &walk.steps.back().second;
        }
        const auto factors = draw_factors(walk.source.dims.size());
        for (;;) {
            std::vector<Spec*> specs = {&walk.source};
            for (auto& step : walk.steps) specs.push_back(&step.second);
            if (set_common_extents(specs, factors) || walk.steps.empty()) break;
            walk.steps.pop_back();
        }
        return walk;
    });
    return rc::gen::suchThat(draw, [](const Walk& walk) {
        return !walk.steps.empty() && devices(walk.source) * tile_size(walk.source) <= device_elements_max;
    });
}

Plan plan_of(const Walk& walk) {
    Plan plan{layout_of(walk.source), layout_of(walk.steps.empty() ? walk.source : walk.steps.back().second), {}};
    for (const auto& [kind, after] : walk.steps) plan.steps.push_back({kind, layout_of(after)});
    return plan;
}

void showValue(const Walk& walk, std::ostream& out) {
    out << mesh_text(walk.source) << ": " << layout_text(walk.source);
    for (const auto& [kind, after] : walk.steps) out << " " << name(kind) << " " << layout_text(after);
}

}  // namespace reshard::test
