#include "support/generators.hpp"

#include <algorithm>
#include <numeric>

namespace reshard::test {

namespace {

/// The parts of one axis, major to minor. `cut` chooses how its size is factored.
std::vector<SubAxis> parts_of(const Axis& axis, int cut) {
    static const std::vector<std::vector<std::vector<Index>>> cuts = {
        {}, {{1}}, {{2}}, {{3}}, {{4}, {2, 2}}, {{5}}, {{6}, {2, 3}, {3, 2}}};
    const auto& ways = cuts[static_cast<std::size_t>(axis.size)];
    std::vector<SubAxis> parts;
    Index before = 1;
    for (const Index size : ways[static_cast<std::size_t>(cut) % ways.size()]) {
        parts.push_back({axis.name, before, size});
        before *= size;
    }
    return parts;
}

/// Deals the parts of all axes to the dimensions and the unreduced set. It may leave a part out, which shrinking
/// prefers.
Spec deal(const std::vector<Axis>& mesh, std::size_t rank, const Scope& scope) {
    Spec spec;
    spec.mesh = mesh;
    spec.dims.resize(rank);
    const bool sums = scope.sums && *between(0, 4) == 3;
    if (sums && *between(0, 2) == 1) spec.reduction = all_reductions[*between<std::size_t>(0, all_reductions.size())];
    for (const Axis& axis : mesh) {
        const int cut = scope.sub_axes ? *between(0, 3) : 0;
        for (const SubAxis& part : parts_of(axis, cut)) {
            const int roles = 2 + 3 * static_cast<int>(rank) + (sums ? 2 : 0);
            const int role = *between(0, roles);
            if (role < 2) continue;
            if (role >= 2 + 3 * static_cast<int>(rank)) {
                spec.unreduced.push_back(part);
                continue;
            }
            auto& axes = spec.dims[static_cast<std::size_t>((role - 2) / 3)].axes;
            const auto where = *between<std::size_t>(0, axes.size() + 1);
            axes.insert(axes.end() - static_cast<std::ptrdiff_t>(where), part);
        }
    }
    return spec;
}

void set_extents(std::vector<Spec*> specs, const std::vector<Index>& factors, bool even) {
    for (std::size_t i = 0; i < specs[0]->dims.size(); ++i) {
        Index least = 1;
        for (const Spec* spec : specs) least = std::lcm(least, shards(spec->dims[i]));
        for (Spec* spec : specs) spec->dims[i].extent = even ? least * factors[i] : factors[i];
    }
}

/// Removes axes from the longest dimension until all layouts are small enough to move element by element.
void fit(std::vector<Spec*> specs, std::vector<Index> factors, bool even) {
    for (;;) {
        set_extents(specs, factors, even);
        const bool small = std::ranges::all_of(
            specs, [](const Spec* spec) { return devices(*spec) * tile_size(*spec) <= device_elements_max; });
        if (small) return;
        std::size_t longest = 0;
        for (std::size_t i = 0; i < specs[0]->dims.size(); ++i)
            if (specs[0]->dims[i].extent > specs[0]->dims[longest].extent) longest = i;
        if (factors[longest] > 1) {
            factors[longest] = even ? 1 : factors[longest] / 2;
            continue;
        }
        for (Spec* spec : specs)
            if (!spec->dims[longest].axes.empty()) spec->dims[longest].axes.pop_back();
    }
}

std::vector<Index> factors_for(std::size_t rank, bool even) {
    std::vector<Index> factors;
    for (std::size_t i = 0; i < rank; ++i) {
        if (even)
            factors.push_back(*rc::gen::element<Index>(1, 1, 1, 2, 3));
        else
            factors.push_back(
                *rc::gen::weightedOneOf<Index>({{1, rc::gen::element<Index>(0, 1, 2)}, {12, between<Index>(1, 33)}}));
    }
    return factors;
}

std::vector<Axis> draw_mesh(const Scope& scope) {
    Index most = scope.devices_max;
    if (most == 0) most = *rc::gen::weightedElement<Index>({{12, 24}, {6, 64}, {1, 216}, {1, 1296}});
    return *meshes(most);
}

std::size_t draw_rank() { return *rc::gen::weightedElement<std::size_t>({{1, 0}, {3, 1}, {6, 2}, {4, 3}, {2, 4}}); }

}  // namespace

std::string repeat_line(const Pair& pair) {
    return "reshard plan --mesh '" + mesh_text(pair.source) + "' '" + layout_text(pair.source) + "' '" +
           layout_text(pair.target) + "'";
}

void showValue(const Pair& pair, std::ostream& out) { out << repeat_line(pair); }
void showValue(const Spec& spec, std::ostream& out) { out << mesh_text(spec) << ": " << layout_text(spec); }

bool divides(const Spec& spec) {
    return std::ranges::all_of(spec.dims, [](const SpecDim& dim) { return dim.extent % shards(dim) == 0; });
}

bool divides(const Pair& pair) { return divides(pair.source) && divides(pair.target); }

Index tile_size(const Spec& spec) {
    Index size = 1;
    for (const SpecDim& dim : spec.dims) size *= (dim.extent + shards(dim) - 1) / shards(dim);
    return size;
}

rc::Gen<std::vector<Axis>> meshes(Index devices_max) {
    return rc::gen::exec([devices_max] {
        static const char* const names[] = {"x", "y", "z", "w"};
        const auto axes = *rc::gen::weightedElement<std::size_t>({{1, 0}, {2, 1}, {5, 2}, {6, 3}, {4, 4}});
        std::vector<Axis> mesh;
        Index count = 1;
        for (std::size_t i = 0; i < axes; ++i) {
            Index size = *rc::gen::weightedElement<Index>({{1, 1}, {7, 2}, {4, 3}, {4, 4}, {1, 5}, {3, 6}});
            while (size > 1 && count * size > devices_max) --size;
            count *= size;
            mesh.push_back({names[i], size});
        }
        return mesh;
    });
}

rc::Gen<Pair> pairs(Scope scope) {
    return rc::gen::exec([scope] {
        const auto mesh = draw_mesh(scope);
        const std::size_t rank = draw_rank();
        const bool even = !scope.uneven || *between(0, 3) < 2;
        Pair pair{deal(mesh, rank, scope), deal(mesh, rank, scope)};
        pair.target.reduction = pair.source.reduction;  // otherwise the layouts between them would have two reductions
        if (scope.sums && *between(0, 3) == 0) {
            // In half of the cases the unreduced axes stay: take the source's, and free them in the target.
            pair.target.unreduced = pair.source.unreduced;
            for (SpecDim& dim : pair.target.dims)
                std::erase_if(dim.axes, [&](const SubAxis& axis) {
                    return std::ranges::any_of(pair.source.unreduced,
                                               [&](const SubAxis& sum) { return sum.axis == axis.axis; });
                });
        }
        fit({&pair.source, &pair.target}, factors_for(rank, even), even);
        return pair;
    });
}

rc::Gen<Spec> layouts(Scope scope) {
    return rc::gen::exec([scope] {
        const auto mesh = draw_mesh(scope);
        const std::size_t rank = draw_rank();
        const bool even = !scope.uneven || *between(0, 3) < 2;
        Spec spec = deal(mesh, rank, scope);
        fit({&spec}, factors_for(rank, even), even);
        return spec;
    });
}

}  // namespace reshard::test
