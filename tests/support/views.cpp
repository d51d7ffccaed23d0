#include "support/views.hpp"

#include <algorithm>
#include <random>

#include "reshard/planner/view.hpp"

namespace reshard::test {
namespace {

using Random = std::mt19937_64;
using Parts = std::vector<std::vector<Index>>;

std::size_t below(Random& random, std::size_t bound) { return static_cast<std::size_t>(random() % bound); }

// One to three factors of an extent, in order.
std::vector<Index> random_parts(Random& random, Index extent) {
    std::vector<Index> parts = {extent};
    for (std::size_t cuts = below(random, 3); cuts > 0; --cuts) {
        std::vector<Index> divisors;
        for (Index d = 2; d < parts.back(); ++d)
            if (parts.back() % d == 0) divisors.push_back(d);
        if (divisors.empty()) break;
        const Index outer = divisors[below(random, divisors.size())];
        parts.back() /= outer;
        parts.insert(parts.end() - 1, outer);
    }
    return parts;
}

}  // namespace

Plan with_views(const Plan& plan, std::uint64_t seed) {
    Random random(seed);
    std::size_t begin = below(random, plan.steps.size() + 1);
    std::size_t end = below(random, plan.steps.size() + 1);
    if (begin > end) std::swap(begin, end);
    Parts parts;
    for (const Dim& dim : plan.source.dims) parts.push_back({dim.extent});
    const auto splits_all = [&] {
        for (std::size_t i = begin; i <= end; ++i)
            if (!in_parts(layout_before(plan, i), parts)) return false;
        return true;
    };
    for (std::size_t i = 0; i < parts.size(); ++i)
        for (int tries = 0; tries < 4; ++tries) {
            parts[i] = random_parts(random, plan.source.dims[i].extent);
            if (splits_all()) break;
            parts[i] = {plan.source.dims[i].extent};
        }
    if (std::ranges::all_of(parts, [](const auto& of_dim) { return of_dim.size() == 1; })) return plan;
    Plan seen{plan.source, plan.target, {}, plan.network};
    for (std::size_t i = 0; i <= plan.steps.size(); ++i) {
        if (i == begin) seen.steps.push_back({StepKind::view, *in_parts(layout_before(plan, i), parts)});
        if (i == end) seen.steps.push_back({StepKind::view, layout_before(plan, i)});
        if (i == plan.steps.size()) break;
        const Step& step = plan.steps[i];
        const bool inside = begin <= i && i < end;
        seen.steps.push_back({step.kind, inside ? *in_parts(step.layout, parts) : step.layout});
    }
    return seen;
}

}  // namespace reshard::test
