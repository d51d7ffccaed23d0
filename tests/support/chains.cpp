#include "support/chains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "reshard/text.hpp"
#include "support/views.hpp"

namespace reshard::test {
namespace {

using enum StepKind;

using Random = std::mt19937_64;

Index below(Random& random, Index bound) { return static_cast<Index>(random() % static_cast<std::uint64_t>(bound)); }

std::vector<Index> random_mesh(Random& random, Index ranks) {
    std::vector<Index> sizes;
    Index left = ranks;
    const Index axes = below(random, 4);
    for (Index i = 0; i < axes; ++i) {
        sizes.push_back(1 + below(random, std::min<Index>(left, 4)));
        left /= sizes.back();
    }
    return sizes;
}

// The axes of each dimension, in order. The last list has the axes that are left out.
using Spread = std::vector<std::vector<std::size_t>>;

Spread random_spread(Random& random, std::size_t axes, std::size_t dims) {
    std::vector<std::size_t> order(axes);
    for (std::size_t i = 0; i < axes; ++i) order[i] = i;
    std::ranges::shuffle(order, random);
    Spread spread(dims + 1);
    for (const std::size_t axis : order) {
        spread[static_cast<std::size_t>(below(random, static_cast<Index>(dims) + 1))].push_back(axis);
    }
    return spread;
}

std::string axes_text(const std::vector<std::size_t>& axes) {
    std::string text;
    for (const std::size_t axis : axes) text += fmt::format("{}a{}", text.empty() ? "" : ",", axis);
    return axes.size() == 1 ? text : "(" + text + ")";
}

std::string layout_text(std::string_view dtype, const std::vector<Index>& shape, const Spread& spread,
                        std::string_view reduction) {
    std::string text(dtype);
    text += '[';
    for (std::size_t k = 0; k < shape.size(); ++k) {
        text += fmt::format("{}{}", k == 0 ? "" : ",", shape[k]);
        if (!spread[k].empty()) text += "@" + axes_text(spread[k]);
    }
    text += ']';
    if (!reduction.empty() && !spread.back().empty()) {
        text += fmt::format("{{{}:{}}}", reduction, axes_text(spread.back()));
    }
    return text;
}

Layout random_layout(Random& random, const Mesh& mesh, const std::vector<Index>& shape) {
    return *parse_layout(mesh, layout_text("f32", shape, random_spread(random, mesh.axes.size(), shape.size()), ""));
}

}  // namespace

std::string random_pair(std::uint64_t seed, Index ranks) {
    Random random(seed);
    const std::vector<Index> sizes = random_mesh(random, ranks);
    Index devices = 1;
    std::string mesh;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        mesh += fmt::format("{}a{}={}", i == 0 ? "" : ",", i, sizes[i]);
        devices *= sizes[i];
    }
    std::vector<Index> shape(static_cast<std::size_t>(below(random, 4)));
    const bool divides = below(random, 2) == 0;
    for (Index& extent : shape) extent = divides ? devices * (1 + below(random, 2)) : below(random, 11);
    const bool sums = below(random, 4) == 0;
    constexpr std::array<std::string_view, 6> dtypes = {"u8", "i16", "f32", "bf16", "c64", "c128"};
    const std::string_view dtype = dtypes[static_cast<std::size_t>(below(random, 6))];
    const Spread source = random_spread(random, sizes.size(), shape.size());
    const Spread target = random_spread(random, sizes.size(), shape.size());
    // Not every type has every reduction, but every type has a sum and a product.
    constexpr std::array<std::string_view, 4> reductions = {"U", "prod", "max", "avg"};
    std::string_view reduction = reductions[static_cast<std::size_t>(below(random, 4))];
    if (reduction == "max" && dtype[0] == 'c') reduction = "avg";
    if (reduction == "avg" && (dtype[0] == 'u' || dtype[0] == 'i')) reduction = "max";
    return fmt::format("{0}\n{1}\n{0}\n{2}", mesh, layout_text(dtype, shape, source, sums ? reduction : ""),
                       layout_text(dtype, shape, target, ""));
}

Plan random_chain(std::uint64_t seed, Index ranks) {
    Random random(seed);
    const std::vector<Index> sizes = random_mesh(random, ranks);
    std::vector<Axis> axes;
    for (std::size_t i = 0; i < sizes.size(); ++i) axes.push_back({fmt::format("a{}", i), sizes[i]});
    const Mesh mesh(axes);
    const Index devices = device_count(mesh);
    std::vector<Index> shape(static_cast<std::size_t>(1 + below(random, 3)));
    const bool uneven = below(random, 4) == 0;
    for (Index& extent : shape) extent = uneven ? 1 + below(random, 9) : devices * (1 + below(random, 2));
    Plan plan{random_layout(random, mesh, shape), {}, {}};
    if (below(random, 2) == 0) {
        Layout sliced = plan.source;
        for (const Atom& atom : complement(used_atoms(sliced), devices)) sliced.dims[0].atoms.push_back(atom);
        if (type_step(plan.source, {slice, sliced})) plan.steps.push_back({slice, sliced});
    }
    for (Index steps = 2 + below(random, 4); steps > 0; --steps) {
        Layout next = random_layout(random, mesh, shape);
        if (!equivalent(next, layout_before(plan, plan.steps.size())))
            plan.steps.push_back({exchange, std::move(next)});
    }
    plan.target = layout_before(plan, plan.steps.size());
    return random() % 3 == 0 ? with_views(plan, random()) : plan;
}

}  // namespace reshard::test
