// Random pairs of layouts, planned in both vocabularies and moved. Rank 0 makes the text and every rank parses it, so
// all ranks run the same.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/chains.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

// Sources with more summands than targets must be reduced. The vocabularies depend on whether sizes divide.
std::vector<Item> items_of(const std::string& problem, std::uint64_t seed) {
    const auto [source, target] = test::problem_of(problem);
    std::vector<Item> items;
    for (const Vocabulary vocabulary : {Vocabulary::all, Vocabulary::collectives}) {
        Options options;
        options.vocabulary = vocabulary;
        const auto made = synthesize(source, target, options);
        const bool must = vocabulary == Vocabulary::all || (divides(source) && divides(target));
        EXPECT_TRUE(made || !must) << made.error().message << '\n' << problem;
        const Style from = all_styles[seed % all_styles.size()];
        const Style to = all_styles[seed / 7 % all_styles.size()];
        if (made) items.push_back({made->plan(), from, to});
    }
    return items;
}

TEST(Random, PairsArePlannedAndMoved) {
    std::vector<std::string> problems;
    std::vector<std::vector<Item>> items;  // planned once if ranks are threads
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(150)); ++seed) {
        problems.push_back(harness().from_rank_0([&] { return test::random_pair(seed, harness().ranks()); }));
        items.push_back(items_of(problems.back(), seed));
    }
    harness().on_every_rank([&](Backend& backend) {
        for (std::size_t i = 0; i < problems.size(); ++i) {
            SCOPED_TRACE(fmt::format("seed {}\n{}", i + 1, problems[i]));
            expect_moves(backend, items[i], {1, i % 2 == 0, {}, i % 4 < 2});
            if (testing::Test::HasFatalFailure()) return;
        }
    });
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
            // The plans travel as text, because two machines may draw different numbers.
            const auto text =
                harness().from_rank_0([&] { return format(test::random_chain(3 * seed + array, ranks)); });
            auto plan = parse_plan(text);
            ASSERT_TRUE(plan) << text;
            const auto lowered = lower(*plan, 0, {}, {.donate = true});
            ASSERT_TRUE(lowered) << lowered.error().message << '\n' << text;
            const auto writes = [](const RankStep& step) { return step.to.buffer == BufferId::source; };
            if (std::ranges::any_of(lowered->steps, writes)) ++writing;
            plans.push_back(std::move(*plan));
        }
    }
    if (ranks > 2) {
        EXPECT_GT(writing, count / 3);  // out of three times as many
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

// Any devices, two meshes, cuts of every kind, with one rank outside the meshes if possible.
TEST(Random, AnywhereIsPlannedAndMoved) {
    const Index ranks = harness().ranks();
    std::vector<std::string> questions;
    std::vector<std::optional<Plan>> plans;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(100)); ++seed) {
        questions.push_back(harness().from_rank_0(
            [&] { return test::random_question(seed, seed % 3 == 0 && ranks > 1 ? ranks - 1 : ranks); }));
        const Problem problem = test::problem_of(questions.back());
        plans.emplace_back();
        // If summands arise on the way, the plan chooses which device keeps the value.
        const Index summands = summand_count(problem.target);
        if (summands > 1 && summands != summand_count(problem.source)) continue;
        const auto made = synthesize(problem);
        ASSERT_TRUE(made) << made.error().message << '\n' << questions.back();
        plans.back() = made->plan();
    }
    harness().on_every_rank([&](Backend& backend) {
        std::size_t moved = 0;
        for (std::size_t i = 0; i < questions.size(); ++i) {
            SCOPED_TRACE(fmt::format("seed {}\n{}", i + 1, questions[i]));
            if (!plans[i]) continue;
            const Item item{*plans[i], all_styles[i % all_styles.size()], all_styles[i / 5 % all_styles.size()]};
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
