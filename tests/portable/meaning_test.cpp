// A tile program does what its plan means, and moves as much as the plan says.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reshard/portable/interpret.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

// Values whose sums do not wrap, so that an average divides without a rest. A summand of an average is `divisor` times
// its share.
Tiles times(Tiles tiles, Index factor) {
    for (auto& tile : tiles)
        for (std::int64_t& value : tile) value *= factor;
    return tiles;
}

Tiles small(Tiles tiles) {
    for (auto& tile : tiles)
        for (std::int64_t& value : tile) value %= 1000;
    return tiles;
}

std::vector<std::int64_t> array_of(const Layout& layout) {
    Index elements = 1;
    for (const Index extent : shape(layout)) elements *= extent;
    std::vector<std::int64_t> array(static_cast<std::size_t>(elements));
    std::iota(array.begin(), array.end(), 17);
    return array;
}

bool is_prod(const Layout& layout) { return !layout.unreduced.empty() && layout.reduction == Reduction::prod; }

// An all_reduce of prod is two collectives, or one that receives more.
bool reduces_prod(const Plan& plan) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (plan.steps[i].kind == StepKind::all_reduce && is_prod(layout_before(plan, i))) return true;
    return false;
}

// What is wrong with the program of a plan; empty when nothing is.
std::string fault(const Plan& plan, const Problem& asked) {
    const auto program = portable(plan, asked);
    if (!program) return "no program: " + describe(program.error());
    const auto tiles = distribute(plan.source, array_of(plan.source));
    if (!tiles) return "no tiles: " + describe(tiles.error());
    const Tiles source = small(*tiles);
    const auto expected = simulate(plan, source);
    if (!expected) return "no simulation: " + describe(expected.error());
    const auto found = interpret(*program, times(source, divisor(plan.source)));
    if (!found) return "not interpreted: " + describe(found.error());
    if (*found != times(*expected, divisor(plan.target))) return "wrong tiles";
    const auto verdict = check(plan);
    std::size_t collectives = 0;
    Index received = 0;
    for (const Operation& operation : program->operations) {
        collectives += received_elements(operation) > 0 ? 1 : 0;
        received += received_elements(operation);
    }
    std::size_t moving = 0;
    Index priced = 0;
    for (const Move& move : verdict->moves) {
        moving += move.received > 0 ? 1 : 0;
        priced += move.received;
    }
    if (reduces_prod(plan)) return "";
    if (collectives != moving) return fmt::format("{} collectives for {} moving steps", collectives, moving);
    if (received != priced) return fmt::format("receives {} elements, the plan {}", received, priced);
    return "";
}

std::string fault(const Plan& plan) { return fault(plan, {plan.source, plan.target}); }

bool has_exchange(const Plan& plan) {
    return std::ranges::any_of(plan.steps, [](const Step& step) { return step.kind == StepKind::exchange; });
}

TEST(PortableMeaning, WalksOfAnySteps) {
    int ran = 0;
    check_property(cases(600), [&] {
        const Plan plan = plan_of(*walks());
        RC_PRE(!has_exchange(plan));
        const std::string wrong = fault(plan);
        RC_LOG() << format(plan) << wrong;
        RC_ASSERT(wrong == "" || wrong.find("common refinement") != std::string::npos);
        ran += wrong == "" ? 1 : 0;
    });
    EXPECT_GT(ran, cases(300));
}

// All layouts of one array on a mesh: each axis cuts one of the dimensions or none, in each order.
std::vector<Layout> layouts_on(const Mesh& mesh, const std::vector<Index>& extents) {
    std::vector<Layout> all = {{DType::f32, mesh, {}, {}}};
    for (const Index extent : extents) all[0].dims.emplace_back(extent);
    for (const Axis& axis : mesh.axes) {
        const Atom atom = *atom_of(mesh, {axis.name});
        std::vector<Layout> more = all;
        for (const Layout& layout : all)
            for (std::size_t d = 0; d < extents.size(); ++d)
                for (std::size_t place = 0; place <= layout.dims[d].atoms.size(); ++place) {
                    Layout cut = layout;
                    AtomList& atoms = cut.dims[d].atoms;
                    atoms.insert(atoms.begin() + static_cast<std::ptrdiff_t>(place), atom);
                    more.push_back(std::move(cut));
                }
        all = std::move(more);
    }
    for (Layout& layout : all)
        for (Dim& dim : layout.dims) dim.atoms = canonical(dim.atoms);
    return all;
}

void all_pairs(const Mesh& mesh, const std::vector<Index>& extents, std::size_t one_in) {
    const std::vector<Layout> layouts = layouts_on(mesh, extents);
    std::uint64_t number = drawn_seed();
    std::size_t pairs = 0;
    for (const Layout& source : layouts)
        for (const Layout& target : layouts) {
            number = number * 6364136223846793005u + 1442695040888963407u;
            if ((number >> 33) % one_in != 0) continue;
            const auto made = synthesize(source, target, {.vocabulary = Vocabulary::collectives});
            ASSERT_TRUE(made.has_value()) << describe(made.error());
            ASSERT_EQ(fault(made->plan(), {source, target}), "") << format(made->plan());
            ++pairs;
        }
    EXPECT_GT(pairs, layouts.size() * layouts.size() / one_in / 2);
}

TEST(PortableMeaning, AllPairsOfRankTwo) {
    all_pairs({{"x", 2}, {"y", 4}}, {16, 8}, 1);
    all_pairs({{"a", 2}, {"b", 2}, {"c", 2}}, {8, 16}, long_run() ? 1 : 4);
}

TEST(PortableMeaning, PairsOfRankThree) {
    all_pairs({{"x", 2}, {"y", 4}}, {8, 8, 16}, long_run() ? 1 : 3);
    all_pairs({{"a", 2}, {"b", 2}, {"c", 2}}, {8, 8, 8}, long_run() ? 3 : 60);
}

}  // namespace
}  // namespace reshard::test
