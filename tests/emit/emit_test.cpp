// A tile program does what its plan means, and moves as much as the plan says.
#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "reshard/emit/interpret.hpp"
#include "reshard/planner/view.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/views.hpp"

namespace reshard::test {
namespace {

// Values with sums that do not wrap, so that an average divides without a remainder. A summand of an average is
// `divisor` times its share.
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

// An all_reduce of prod is two collectives, or one collective that receives more.
bool reduces_prod(const Plan& plan) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i)
        if (plan.steps[i].kind == StepKind::all_reduce && is_prod(layout_before(plan, i))) return true;
    return false;
}

// The tiles of the array before its transposition. Dimension i of `extents` is dimension order[i] of the result.
Tiles before(const Tiles& tiles, const Layout& permuted, const std::vector<Index>& order) {
    if (order.empty()) return tiles;
    std::vector<Index> strides(order.size(), 1);  // in the result, of each dimension of `permuted`
    for (std::size_t i = 0; i < order.size(); ++i)
        for (std::size_t k = 0; k < order.size(); ++k)
            if (order[k] > order[i]) strides[i] *= tile_extent(permuted.dims[k]);
    Tiles made = tiles;
    for (std::size_t device = 0; device < tiles.size(); ++device)
        for (std::size_t position = 0; position < tiles[device].size(); ++position) {
            auto rest = static_cast<Index>(position);
            Index at = 0;
            for (std::size_t i = order.size(); i-- > 0; rest /= tile_extent(permuted.dims[i]))
                at += rest % tile_extent(permuted.dims[i]) * strides[i];
            made[device][static_cast<std::size_t>(at)] = tiles[device][position];
        }
    return made;
}

// The fault of a plan's program; empty if it is right. The plan begins at the transposed source.
std::string fault(const Plan& plan, const Problem& asked, const std::vector<Index>& order = {}) {
    const auto program = portable(plan, asked, order);
    if (!program) return "no program: " + describe(program.error());
    const auto tiles = distribute(plan.source, array_of(plan.source));
    if (!tiles) return "no tiles: " + describe(tiles.error());
    const Tiles source = small(*tiles);
    const auto expected = simulate(plan, source);
    if (!expected) return "no simulation: " + describe(expected.error());
    const Tiles given = before(source, permuted(asked.source, order).value(), order);
    const auto found = interpret(*program, times(given, divisor(plan.source)));
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
        const Plan plan = with_views(plan_of(*walks()), *rc::gen::arbitrary<std::uint64_t>());
        RC_PRE(!has_exchange(plan));
        const std::string wrong = fault(plan);
        RC_LOG() << format(plan) << wrong;
        RC_ASSERT(wrong == "" || wrong.find("common refinement") != std::string::npos);
        ran += wrong == "" ? 1 : 0;
    });
    EXPECT_GT(ran, cases(300));
}

// All layouts of one array on a mesh: each axis cuts one of the dimensions or is unused, in each order.
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
    all_pairs({{"a", 2}, {"b", 2}, {"c", 2}}, {8, 16}, 1);
}

TEST(PortableMeaning, PairsOfRankThree) {
    all_pairs({{"x", 2}, {"y", 4}}, {8, 8, 16}, long_run() ? 1 : 3);
    all_pairs({{"a", 2}, {"b", 2}, {"c", 2}}, {8, 8, 8}, long_run() ? 1 : 20);
}

// Plans for random axes and parts of axes, several dimensions and reductions.
TEST(PortableMeaning, RandomPairs) {
    int refined = 0;
    check_property(cases(400), [&] {
        const Pair pair = *pairs({.uneven = false, .devices_max = 48});
        const Problem asked{layout_of(pair.source), layout_of(pair.target)};
        const auto made = synthesize(asked, {.vocabulary = Vocabulary::collectives});
        RC_PRE(made.has_value());
        if (std::ranges::any_of(made->plan().steps, [](const Step& step) { return !divides(step.layout); })) return;
        const std::string wrong = fault(made->plan(), asked);
        RC_LOG() << repeat_line(pair) << wrong;
        RC_ASSERT(wrong == "" || wrong.find("common refinement") != std::string::npos);
        refined += wrong == "" ? 1 : 0;
    });
    EXPECT_GT(refined, cases(300));
}

// Two lists of devices, reshapes, partial averages, casts, transpositions: the program answers the problem, not only
// the plan.
TEST(PortableMeaning, AnyQuestion) {
    int ran = 0;
    int cast = 0;
    int transposed = 0;
    check_property(cases(3000), [&] {
        Problem asked = problem_of(*questions(8));
        std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
        if (random() % 2 == 0) asked.target.dtype = random() % 2 == 0 ? DType::f32 : DType::f64;
        const auto made = synthesize(asked, {.vocabulary = Vocabulary::collectives, .cast = true});
        if (!made) return;
        // Dimension i is dimension order[i] of the source that the program begins at.
        std::vector<Index> order;
        if (random() % 2 == 0) {
            order.resize(asked.source.dims.size());
            std::iota(order.begin(), order.end(), Index{0});
            std::ranges::shuffle(order, random);
            const std::vector<Dim> dims = asked.source.dims;
            for (std::size_t i = 0; i < dims.size(); ++i)
                asked.source.dims[static_cast<std::size_t>(order[i])] = dims[i];
        }
        if (const auto program = portable(made->plan(), asked, order); !program) {
            RC_LOG() << program.error().message;
            RC_ASSERT(program.error().code == Code::unsupported);
            return;
        }
        const std::string wrong = fault(made->plan(), asked, order);
        RC_LOG() << format(made->plan()) << wrong;
        RC_ASSERT(wrong == "");
        ++ran;
        cast += asked.source.dtype != asked.target.dtype ? 1 : 0;
        transposed += std::ranges::is_sorted(order) ? 0 : 1;
    });
    EXPECT_GT(ran, cases(100));
    EXPECT_GT(cast, cases(10));
    EXPECT_GT(transposed, cases(10));
}

// A cut in pieces of one length that gives each shard as many: in every round each shard has one piece. Rounds have one
// order, any one, turns back and forth, or each its own.
Dim periodic(std::mt19937_64& random, const AtomList& atoms, Index rounds, Index block) {
    std::vector<Index> order(static_cast<std::size_t>(combinations(atoms)));
    std::iota(order.begin(), order.end(), Index{0});
    const auto kind = random() % 4;
    if (kind == 1) std::ranges::shuffle(order, random);
    Dim dim(rounds * combinations(atoms) * block, atoms);
    Index end = 0;
    for (Index round = 0; round < rounds; ++round) {
        for (const Index shard : order) dim.pieces.push_back({end += block, shard});
        if (kind == 2) std::ranges::reverse(order);
        if (kind == 3) std::ranges::shuffle(order, random);
    }
    make_canonical(dim);
    return dim;
}

// Each dimension is whole, cut evenly or cut in pieces by an axis or two.
Layout periodic_layout(std::mt19937_64& random, const Mesh& mesh, const std::array<Index, 3>& rounds) {
    AtomList axes;
    for (const Axis& axis : mesh.axes) axes.push_back(*atom_of(mesh, {axis.name}));
    std::ranges::shuffle(axes, random);
    Layout layout{DType::f32, mesh, {}, {}};
    for (const Index round : rounds) {
        AtomList atoms;
        for (std::size_t taken = random() % 3; taken > 0 && !axes.empty(); --taken) {
            atoms.push_back(axes.back());
            axes.pop_back();
        }
        atoms = canonical(atoms);
        const Index extent = 2 * device_count(mesh) * round;
        const Index each = extent / combinations(atoms);
        const Index blocks = random() % 2 == 0 ? round : 2 * round;
        layout.dims.push_back(random() % 3 == 0 ? Dim(extent, atoms) : periodic(random, atoms, blocks, each / blocks));
    }
    return layout;
}

// Cuts in pieces: as digits if they are products of digits. If they are not, a tile is reordered while its
// dimension is whole.
TEST(PortableMeaning, CutsInPieces) {
    std::mt19937_64 random(drawn_seed());
    int ran = 0;
    int no_plan = 0;
    int other_pieces = 0;
    for (int turn = 0; ran < cases(500); ++turn) {
        ASSERT_LT(turn, cases(20000)) << ran << " have a program";
        const Mesh mesh = random() % 2 == 0 ? Mesh{{"x", 2}, {"y", 3}} : Mesh{{"a", 2}, {"b", 2}, {"c", 2}};
        const std::array<Index, 3> rounds = {1, 2, 1};
        const Problem asked{periodic_layout(random, mesh, rounds), periodic_layout(random, mesh, rounds)};
        if (!has_pieces(asked.source) && !has_pieces(asked.target)) continue;
        SCOPED_TRACE(format(asked.source) + " to " + format(asked.target) + " on " + format(mesh));
        ASSERT_TRUE(has_program(asked));
        const auto made = synthesize(asked, {.vocabulary = Vocabulary::collectives});
        if (!made) {
            ASSERT_EQ(made.error().code, Code::infeasible);
            ++no_plan;
            continue;
        }
        if (const auto program = portable(made->plan(), asked); !program) {
            ASSERT_NE(program.error().message.find("other pieces"), std::string::npos) << program.error().message;
            ++other_pieces;
            continue;
        }
        ASSERT_EQ(fault(made->plan(), asked), "") << format(made->plan());
        ++ran;
    }
    std::cout << "  " << ran << " programs; " << no_plan << " questions without a plan of collectives, " << other_pieces
              << " plans from pieces to other pieces\n";
}

TEST(PortableMeaning, CutsThatAreDigitsTakeOneAllToAll) {
    const Mesh mesh{{"x", 8}};
    const auto kinds = [&](const char* source, const char* target) {
        const Problem asked{*parse_layout(mesh, source), *parse_layout(mesh, target)};
        const auto made = synthesize(asked, {.vocabulary = Vocabulary::collectives});
        std::vector<OperationKind> found;
        const TileProgram program = portable(made->plan(), asked).value();
        for (const Operation& operation : program.operations) found.push_back(operation.kind);
        return found;
    };
    using enum OperationKind;
    EXPECT_EQ(kinds("f64[65536@x,512]", "f64[65536@x/256,512]"),
              (std::vector{reshape, transpose, all_to_all, reshape}));
}

// The transposition is part of the copies around the all_to_all, and the narrower type travels.
TEST(PortableMeaning, ATranspositionTakesNoCopyOfItsOwn) {
    const Mesh mesh{{"x", 8}};
    const Layout source = *parse_layout(mesh, "f32[4096@x,2048]");
    const Problem asked{source, *parse_layout(mesh, "bf16[2048@x,4096]")};
    const std::vector<Index> order = {1, 0};
    const auto made = synthesize({permuted(source, order).value(), asked.target},
                                 {.vocabulary = Vocabulary::collectives, .cast = true});
    std::vector<OperationKind> found;
    const TileProgram program = portable(made->plan(), asked, order).value();
    for (const Operation& operation : program.operations) found.push_back(operation.kind);
    using enum OperationKind;
    EXPECT_EQ(found, (std::vector{cast, reshape, transpose, all_to_all, reshape, transpose}));
}

TEST(PortableMeaning, GathersOfSeveralDimensionsAreSplitWhereItSavesCopies) {
    const Mesh mesh{{"a", 4}, {"b", 2}};
    const auto kinds = [&](Index extent) {
        const Layout source = make_layout(mesh, DType::f32, {extent, extent}, P{"a", "b"}).value();
        const Layout target = make_layout(mesh, DType::f32, {extent, extent}, {}).value();
        const Plan plan{source, target, {{StepKind::all_gather, target}}};
        std::vector<OperationKind> found;
        const TileProgram program = portable(plan).value();
        for (const Operation& operation : program.operations) found.push_back(operation.kind);
        return found;
    };
    using enum OperationKind;
    EXPECT_EQ(kinds(64), (std::vector{all_gather, reshape, transpose, reshape}));
    EXPECT_EQ(kinds(1024), (std::vector{all_gather, reshape, transpose, all_gather, reshape}));
    const Layout source = make_layout(mesh, DType::f32, {1024, 1024}, P{"a", "b"}).value();
    const Layout target = make_layout(mesh, DType::f32, {1024, 1024}, {}).value();
    const Plan plan{source, target, {{StepKind::all_gather, target}}};
    const auto tiles = distribute(source, array_of(source)).value();
    EXPECT_EQ(interpret(portable(plan).value(), tiles).value(), simulate(plan, tiles).value());
}

TEST(PortableMeaning, WhatIsNoProgramIsRefused) {
    const Mesh mesh{{"x", 2}, {"y", 3}};
    const Layout source = make_layout(mesh, DType::f32, {6}, P{"x"}).value();
    const Layout target = make_layout(mesh, DType::f32, {6}, P{"y"}).value();
    const Layout uneven = make_layout(mesh, DType::f32, {7}, P{"x"}).value();
    const Layout whole = make_layout(mesh, DType::f32, {7}, {}).value();
    const auto refusal = [](const Result<TileProgram>& made) { return made ? "made" : made.error().message; };
    EXPECT_NE(refusal(portable({source, target, {{StepKind::exchange, target}}})).find("exchange"), std::string::npos);
    EXPECT_NE(refusal(portable({uneven, whole, {{StepKind::all_gather, whole}}})).find("do not divide"),
              std::string::npos);
    const Plan stays{source, source, {}};
    EXPECT_NE(refusal(portable(stays, {target, target})).find("no answer to this question"), std::string::npos);
    EXPECT_EQ(portable(stays).value().operations, std::vector<Operation>{});
    EXPECT_FALSE(portable({source, target, {}}).has_value());  // does not arrive
}

// Each way of breaking an operation is found by the interpreter.
TEST(PortableMeaning, BrokenProgramsAreNotInterpreted) {
    const Mesh mesh{{"x", 2}};
    const Layout source = make_layout(mesh, DType::f32, {4, 4}, P{"x"}).value();
    const auto run = [&](const Operation& operation) {
        const Tiles tiles = distribute(source, array_of(source)).value();
        return interpret({source, source, {operation}}, tiles).has_value();
    };
    using enum OperationKind;
    const Operation gather{.kind = all_gather, .input = {2, 4}, .output = {4, 4}, .groups = {{0, 1}}};
    EXPECT_TRUE(run(gather));
    Operation broken = gather;
    broken.groups = {{0, 0}};
    EXPECT_FALSE(run(broken));
    broken = gather;
    broken.output = {2, 8};
    EXPECT_FALSE(run(broken));
    broken = gather;
    broken.input = {3, 4};
    EXPECT_FALSE(run(broken));
    Operation moved{.kind = permute, .input = {2, 4}, .output = {2, 4}, .pairs = {{0, 1}, {1, 0}}};
    EXPECT_TRUE(run(moved));
    moved.pairs[1].target = 1;
    EXPECT_FALSE(run(moved));
    Operation cut{.kind = slice, .input = {2, 4}, .output = {2, 2}, .starts = {{0, 0}, {0, 2}}};
    EXPECT_TRUE(run(cut));
    cut.starts[1][1] = 3;
    EXPECT_FALSE(run(cut));
    EXPECT_FALSE(run({.kind = transpose, .input = {2, 4}, .output = {4, 2}, .permutation = {1, 1}}));
    EXPECT_FALSE(run({.kind = reshape, .input = {2, 4}, .output = {2, 2}}));
    EXPECT_FALSE(interpret({source, source, {}}, Tiles(1)).has_value());
}

}  // namespace
}  // namespace reshard::test
