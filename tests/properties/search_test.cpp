// The search prices hops in digits; the judge prices the steps that they stand for. The two agree if sizes divide.
#include "synth/search/search.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "reshard/text.hpp"
#include "src/tables/step_kinds.hpp"
#include "support/generators.hpp"
#include "support/price.hpp"
#include "support/property.hpp"
#include "synth/search/digit_search.hpp"

namespace reshard::test {
namespace {

Machine draw_machine() {
    // The hard levels end inside an axis, or cross it.
    Machine machine{
        "drawn", {}, *rc::gen::element<Index>(1'000'000'000, 370'000'000'000), *rc::gen::element<Index>(0, 21, 10'000)};
    Index devices = 1;
    for (int levels = *between(1, 4); levels > 1; --levels) {
        devices *= *between<Index>(2, 5);
        machine.levels.push_back({"inner", devices, *between<Index>(0, 5000), 48'000'000'000, 0, *between(0, 2) == 0});
    }
    machine.levels.push_back({"all", index_max, 3'000'000, *between<Index>(1, 7'000'000'000), 14'000'000});
    return machine;
}

// Every move, and the exchange to the target where summands stay.
std::vector<Edge> hops_from(const Moves& moves, const SearchSpace& frame, const State& state) {
    std::vector<Edge> hops;
    moves.append_moves(state, index_max, hops);
    moves.append_permutes(state, hops);
    const Sides sides = moves.sides_of(state);
    if (state.lists[frame.dims()] == frame.target.lists[frame.dims()])
        hops.push_back(moves.exchange(state, sides, frame.target, moves.sides_of(frame.target), true));
    return hops;
}

TEST(SearchProperty, ThePriceOfAPlanIsTheJudges) {
    int compared = 0;
    check_property(cases(3000), [&] {
        const Pair pair = *pairs({.uneven = false, .devices_max = 64});
        const Problem problem{layout_of(pair.source), layout_of(pair.target)};
        const auto frame = make_search_space(problem);
        if (!frame || !frame->even) return;
        SearchOptions options;
        options.objective = *rc::gen::element(Objective::time, Objective::bytes, Objective::steps);
        options.vocabulary = *rc::gen::element(Vocabulary::all, Vocabulary::collectives);
        // With mixed cuts the price of an exchange is an upper estimate.
        if (frame->mixed) options.vocabulary = Vocabulary::collectives;
        const Index element = size_of(problem.source.dtype);
        options.tile_max = std::max(tile_elements(problem.source), tile_elements(problem.target));
        const Machine machine = draw_machine();
        const Found found = search(*frame, options, machine);
        RC_LOG() << repeat_line(pair) << " --objective " << name(options.objective) << " on\n" << format(machine);
        if (!found.arrived) return;
        Plan plan{problem.source, problem.target, found.steps};
        plan.network = network_for(plan, machine);
        RC_LOG() << format(plan);
        const auto verdict = check(plan);
        RC_ASSERT(verdict.has_value());
        ++compared;
        const Index received = verdict->received_bytes / element;
        const Index time = plan_picoseconds(plan, *verdict, machine);
        switch (options.objective) {
            case Objective::time:
                // Fills of neighbouring axes become one step and cost one copy. Inexact prices are upper estimates.
                if (pair.target.unreduced.empty() && found.exact_prices) {
                    RC_ASSERT(found.price.first == time || equivalent(problem.source, problem.target));
                } else {
                    RC_ASSERT(found.price.first >= time || equivalent(problem.source, problem.target));
                }
                RC_ASSERT(found.price.second == steps_that_move(plan));
                break;
            case Objective::bytes:
                RC_ASSERT(found.price == (EdgeCost{received, steps_that_move(plan)}));
                break;
            case Objective::steps:
                RC_ASSERT(found.price == (EdgeCost{steps_that_move(plan), received}));
                break;
        }
    });
    EXPECT_GT(compared, cases(3000) / 6);
}

// The same for placements of digits. The price of a permute may be less where blocks share a connection.
TEST(SearchProperty, ThePriceOfPlacedDigitsIsTheJudges) {
    int compared = 0;
    int equal = 0;
    check_property(cases(3000), [&] {
        const Pair pair = *pairs({.uneven = false, .devices_max = 64});
        const Problem problem{layout_of(pair.source), layout_of(pair.target)};
        const auto space = make_digit_space(problem, 0, *rc::gen::arbitrary<bool>());
        Machine machine = draw_machine();
        machine.copy_run_ps = 0;  // the time of runs depends on the view
        if (!space || !space->packs() || !prices_digits(*space, Objective::time, machine)) return;
        SearchOptions options;
        options.objective = Objective::time;
        options.tile_max = std::max(tile_elements(problem.source), tile_elements(problem.target));
        const DigitsFound found = search_digits(*space, options, machine);
        if (!found.arrived) return;
        PathInView seen = in_view(*space, found.path);
        Plan plan{seen.layouts.front(), seen.layouts.back(), {}};
        for (std::size_t i = 0; i < found.path.kinds.size(); ++i)
            plan.steps.push_back({found.path.kinds[i], std::move(seen.layouts[i + 1])});
        plan.network = network_for(plan, machine);
        RC_LOG() << repeat_line(pair) << " on\n" << format(machine) << format(plan);
        const auto verdict = check(plan);
        RC_ASSERT(verdict.has_value());
        const Index time = plan_picoseconds(plan, *verdict, machine);
        RC_ASSERT(found.price.first <= time);
        const bool shares = std::ranges::any_of(machine.levels, &Level::shared);
        if (!shares) RC_ASSERT(found.price.first == time);
        // No price is below the bound of the source.
        options.below = found.price;
        ++options.below.first;
        RC_ASSERT(search_digits(*space, options, machine).arrived);
        ++compared;
        equal += found.price.first == time ? 1 : 0;
    });
    EXPECT_GT(compared, cases(3000) / 10);
    EXPECT_GT(equal, compared * 4 / 5);
}

// Blocks of a machine that part the axes: the search counts what moves device by device.
TEST(SearchProperty, ThePriceOfAHopIsTheJudges) {
    int compared = 0;
    int counted = 0;
    check_property(cases(600), [&] {
        const Pair pair = *pairs({.uneven = false, .devices_max = 64});
        Problem problem{layout_of(pair.source), layout_of(pair.target)};
        if (*between(0, 3) == 0) {
            std::vector<Index> devices(static_cast<std::size_t>(device_count(problem.source)));
            std::iota(devices.begin(), devices.end(), *between<Index>(0, 3));
            std::mt19937_64 random(*rc::gen::noShrink(between<std::uint64_t>(0, 1000)));
            std::ranges::shuffle(devices, random);
            problem.source.mesh.devices = problem.target.mesh.devices = devices;
        }
        const auto frame = make_search_space(problem, *rc::gen::arbitrary<bool>());
        if (!frame || !frame->even || frame->mixed) return;
        Machine machine = draw_machine();
        for (Level& level : machine.levels) level.pair_bytes_per_second = *rc::gen::element<Index>(0, 0, 1'000'000'000);
        RC_LOG() << "mesh " << format(problem.source.mesh) << "\n" << repeat_line(pair) << " on\n" << format(machine);
        const EdgeCosts prices(*frame, Objective::time, machine);
        const Moves moves(*frame, true, true, false);
        State state = frame->source;
        for (int walked = 0; walked < 3; ++walked) {
            const std::vector<Edge> hops = hops_from(moves, *frame, state);
            if (hops.empty()) return;
            for (std::size_t turn = 0; turn < 8; ++turn) {
                const Edge& hop = hops[*between<std::size_t>(0, hops.size())];
                const Layout before = frame->layout(state);
                const Step step{hop.kind, frame->layout(hop.state)};
                const auto move = type_step(before, step);
                if (hop.state == state || is_local(hop.kind) || !move) continue;
                const EdgeCost price = prices.of(state, hop, false);
                if (!prices.exact()) return;
                RC_LOG() << format(before) << " to " << format(step.layout) << " by " << name(hop.kind) << "\n";
                RC_ASSERT(price.first == step_picoseconds(before, step, *move, machine));
                ++compared;
                counted += prices.counts_devices() && crosses_groups(hop.kind) ? 1 : 0;
            }
            state = hops[*between<std::size_t>(0, hops.size())].state;
        }
    });
    EXPECT_GT(compared, cases(600));
    EXPECT_GT(counted, cases(600) / 10);
}

// A hop that is skipped because of its floor could not have been cheaper.
TEST(SearchProperty, NoPriceIsBelowItsFloor) {
    int compared = 0;
    int raised = 0;
    check_property(cases(1500), [&] {
        const Pair pair = *pairs({.uneven = *rc::gen::arbitrary<bool>(), .devices_max = 32});
        Problem problem{layout_of(pair.source), layout_of(pair.target)};
        // Also in an order that digits cannot express.
        if (*between(0, 3) == 0) {
            std::vector<Index> devices(static_cast<std::size_t>(device_count(problem.source)));
            std::iota(devices.begin(), devices.end(), Index{0});
            std::mt19937_64 random(*rc::gen::noShrink(between<std::uint64_t>(0, 1000)));
            std::ranges::shuffle(devices, random);
            problem.source.mesh.devices = problem.target.mesh.devices = devices;
        }
        const auto frame = make_search_space(problem, true);
        if (!frame) return;
        const Machine machine = draw_machine();
        RC_LOG() << "mesh " << format(problem.source.mesh) << "\n" << repeat_line(pair) << " on\n" << format(machine);
        const EdgeCosts prices(*frame, Objective::time, machine);
        const Moves moves(*frame, true, true, false);
        const auto least = [&](const State& state) {
            return prices.at_least(state, moves.foreign_to_target(state, moves.least_to_target(state)));
        };
        State state = frame->source;
        for (int walked = 0; walked < 3; ++walked) {
            const std::vector<Edge> hops = hops_from(moves, *frame, state);
            if (hops.empty()) return;
            for (const Edge& hop : hops) {
                if (hop.state == state) continue;  // nothing moves
                const bool arrives = hop.state == frame->target;
                const EdgeCost price = prices.of(state, hop, arrives);
                RC_ASSERT(prices.floor_of(hop, arrives).first <= price.first);
                RC_ASSERT(prices.floor_by_levels(state, hop, arrives).first <= price.first);
                // A step to the target is a way to arrive.
                if (arrives && state != frame->target && hop.kind != StepKind::slice)
                    RC_ASSERT(least(state).first <= price.first);
                ++compared;
                raised += prices.floor_of(hop, arrives) < prices.floor_by_levels(state, hop, arrives) ? 1 : 0;
            }
            state = hops[*between<std::size_t>(0, hops.size())].state;
        }
        SearchOptions options;
        options.objective = Objective::time;
        options.vocabulary = Vocabulary::all;
        const Found found = search(*frame, options, machine);
        if (found.arrived && !found.steps.empty()) RC_ASSERT(least(frame->source).first <= found.price.first);
    });
    EXPECT_GT(compared, cases(1500));
    EXPECT_GT(raised, cases(1500) / 3);
}

}  // namespace
}  // namespace reshard::test
