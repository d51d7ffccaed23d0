// Random pairs of layouts, planned in both vocabularies and moved. Rank 0 makes the text; everybody parses it, so no
// two ranks can differ in what they run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
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

// Which axes shard which dimension, in which order; the last list is of the axes that are left out.
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

// Three lines: mesh, source, target. Every second shape divides by all axes; summands in one of four.
std::string random_problem(std::uint64_t seed, Index ranks) {
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
    // Not every type has every reduction; all have a sum and a product.
    constexpr std::array<std::string_view, 4> reductions = {"U", "prod", "max", "avg"};
    std::string_view reduction = reductions[static_cast<std::size_t>(below(random, 4))];
    if (reduction == "max" && dtype[0] == 'c') reduction = "avg";
    if (reduction == "avg" && (dtype[0] == 'u' || dtype[0] == 'i')) reduction = "max";
    return fmt::format("{}\n{}\n{}", mesh, layout_text(dtype, shape, source, sums ? reduction : ""),
                       layout_text(dtype, shape, target, ""));
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines(1);
    for (const char c : text) {
        if (c == '\n') {
            lines.emplace_back();
        } else {
            lines.back() += c;
        }
    }
    return lines;
}

// Sources with more summands than targets must be reduced; whether sizes divide decides the vocabularies.
std::vector<Item> items_of(const std::string& problem, std::uint64_t seed) {
    const std::vector<std::string> lines = lines_of(problem);
    const auto mesh = parse_mesh(lines[0]);
    const auto source = mesh ? parse_layout(*mesh, lines[1]) : tl::unexpected(mesh.error());
    const auto target = mesh ? parse_layout(*mesh, lines[2]) : tl::unexpected(mesh.error());
    EXPECT_TRUE(source && target) << problem;
    if (!source || !target) return {};
    std::vector<Item> items;
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        Options options;
        options.vocabulary = vocabulary;
        const auto made = synthesize(*source, *target, options);
        const bool must = vocabulary == Vocabulary::all || (divides(*source) && divides(*target));
        EXPECT_TRUE(made || !must) << made.error().message << '\n' << problem;
        const Style from = all_styles[seed % all_styles.size()];
        const Style to = all_styles[seed / 7 % all_styles.size()];
        if (made) items.push_back({made->plan, from, to});
    }
    return items;
}

TEST(Random, PairsArePlannedAndMoved) {
    std::vector<std::string> problems;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(150)); ++seed) {
        problems.push_back(harness().from_rank_0([&] { return random_problem(seed, harness().ranks()); }));
    }
    harness().on_every_rank([&](Backend& backend) {
        for (std::size_t i = 0; i < problems.size(); ++i) {
            SCOPED_TRACE(fmt::format("seed {}\n{}", i + 1, problems[i]));
            const std::vector<Item> items = items_of(problems[i], i + 1);
            expect_moves(backend, items, {1, i % 2 == 0, {}, i % 4 < 2});
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

Layout random_layout(Random& random, const Mesh& mesh, const std::vector<Index>& shape) {
    return *parse_layout(mesh, layout_text("f32", shape, random_spread(random, mesh.axes.size(), shape.size()), ""));
}

// Up to five steps between any layouts, of which the first may be a slice.
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
        if (!same_tiles(next, layout_before(plan, plan.steps.size())))
            plan.steps.push_back({exchange, std::move(next)});
    }
    plan.target = layout_before(plan, plan.steps.size());
    return plan;
}

// Donated sources take tiles between steps while peers still read, several arrays side by side, run after run.
TEST(Random, ChainsOfStepsMoveWithDonatedSources) {
    const Index ranks = harness().ranks();
    const auto count = static_cast<std::uint64_t>(test::cases(60));
    std::vector<std::vector<Plan>> lists;
    std::size_t writing = 0;
    for (std::uint64_t seed = 1; seed <= count; ++seed) {
        std::vector<Plan>& plans = lists.emplace_back();
        for (std::uint64_t array = 0; array < 3; ++array) {
            // As text, since no two machines need draw alike.
            const auto text = harness().from_rank_0([&] { return format(random_chain(3 * seed + array, ranks)); });
            auto plan = parse_plan(text);
            ASSERT_TRUE(plan) << text;
            const auto lowered = lower(*plan, 0, {}, true);
            ASSERT_TRUE(lowered) << lowered.error().message << '\n' << text;
            const auto writes = [](const RankStep& step) { return step.to.place == Place::source; };
            if (std::ranges::any_of(lowered->steps, writes)) ++writing;
            plans.push_back(std::move(*plan));
        }
    }
    if (ranks > 2) {
        EXPECT_GT(writing, count / 3);  // of three times as many
    }
    harness().on_every_rank([&](Backend& backend) {
        for (std::size_t i = 0; i < lists.size(); ++i) {
            SCOPED_TRACE(fmt::format("list {}", i));
            std::vector<Item> items;
            for (const Plan& plan : lists[i]) {
                const Style source = items.empty() ? Style::row_major : all_styles[i % all_styles.size()];
                items.push_back({plan, source, all_styles[i / 6 % all_styles.size()]});
            }
            Manner manner{2, i % 2 == 0, {}, true};
            if (i % 3 == 0) manner.buckets = {{2, 0}, {1}};
            expect_moves(backend, items, manner);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

// Any devices, two meshes, cuts of every kind: with a rank more than the meshes have, where there is one.
TEST(Random, AnywhereIsPlannedAndMoved) {
    const Index ranks = harness().ranks();
    std::vector<std::string> questions;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(100)); ++seed) {
        questions.push_back(harness().from_rank_0(
            [&] { return test::random_question(seed, seed % 3 == 0 && ranks > 1 ? ranks - 1 : ranks); }));
    }
    harness().on_every_rank([&](Backend& backend) {
        std::size_t moved = 0;
        for (std::size_t i = 0; i < questions.size(); ++i) {
            SCOPED_TRACE(fmt::format("seed {}\n{}", i + 1, questions[i]));
            const Problem problem = test::problem_of(questions[i]);
            // Where summands arise on the way it is the plan's choice which device keeps the value.
            const Index summands = summand_count(problem.target);
            if (summands > 1 && summands != summand_count(problem.source)) continue;
            const auto made = synthesize(problem);
            ASSERT_TRUE(made) << made.error().message;
            const Item item{made->plan, all_styles[i % all_styles.size()], all_styles[i / 5 % all_styles.size()]};
            expect_moves(backend, {item}, {1, i % 2 == 0});
            if (testing::Test::HasFatalFailure()) return;
            ++moved;
        }
        if (backend.rank() == 0) std::cout << moved << " of " << questions.size() << " pairs moved\n";
        EXPECT_GT(2 * moved, questions.size());
    });
}

}  // namespace
}  // namespace reshard::conformance
