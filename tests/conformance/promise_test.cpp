// A plan made for a backend states exactly what the backend then runs: the execution, the numbers of steps and pieces,
// the bytes that the busiest rank receives, and the bytes that each rank holds. Random problems, with and without
// limits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "harness.hpp"
#include "reshard/execute.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"
#include "support/anywhere.hpp"
#include "support/chains.hpp"
#include "support/property.hpp"
#include "workbench.hpp"

namespace reshard::conformance {
namespace {

/// Wraps another backend and records the last run that it was given.
class Witness final : public Backend {
public:
    explicit Witness(Backend& backend) : backend_(backend) {}
    std::vector<RankPlan> given;

    [[nodiscard]] std::string_view name() const override { return backend_.name(); }
    [[nodiscard]] Index rank() const override { return backend_.rank(); }
    [[nodiscard]] Index size() const override { return backend_.size(); }
    [[nodiscard]] Capabilities capabilities() const override { return backend_.capabilities(); }
    Result<void> agree(const Result<std::uint64_t>& own) override { return backend_.agree(own); }
    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        given = plans;
        return backend_.prepare(std::move(plans));
    }
    Result<std::unique_ptr<Prepared>> prepare_within(std::vector<RankPlan> plans, Index staging_bytes_max) override {
        given = plans;
        return backend_.prepare_within(std::move(plans), staging_bytes_max);
    }
    Result<std::unique_ptr<Memory>> allocate(Index bytes) override { return backend_.allocate(bytes); }

private:
    Backend& backend_;
};

Index received_bytes(const std::vector<RankPlan>& plans, Index rank) {
    Index bytes = 0;
    for (const RankPlan& plan : plans)
        for (const RankStep& step : plan.steps)
            for (const Transfer& transfer : step.schedule.receives)
                bytes += transfer.peer == rank ? 0 : count(transfer.box) * size_of(plan.dtype);
    return bytes;
}

// The number of steps that run. A slice before another step is a view, and a plan without steps copies.
std::size_t steps_that_run(const Plan& plan, const Execution& execution) {
    if (std::holds_alternative<AsOneExchange>(execution)) return 1;
    std::size_t steps = 0;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        if (plan.steps[i].kind == StepKind::view) continue;
        // A slice is a view of the tile before it, unless it is the last or its tile is seen in another shape.
        const bool leads_on = i + 1 < plan.steps.size() && plan.steps[i + 1].kind != StepKind::view;
        if (plan.steps[i].kind != StepKind::slice || !leads_on) ++steps;
    }
    return std::max<std::size_t>(steps, 1);
}

// A limit that leaves this many eighths of the workspace beside the ends, and space for staging.
Index limit_of(const Plan& plan, Index footprint_bytes, std::uint64_t eighths, Index staging_bytes) {
    const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
    return ends + (footprint_bytes - ends) * static_cast<Index>(eighths) / 8 + staging_bytes;
}

// Options that sometimes donate the source, with a limit in half of the cases.
Options options_of(const Problem& problem, std::uint64_t number, const Capabilities& capabilities) {
    Options options;
    options.vocabulary = number % 2 == 0 ? Vocabulary::all : Vocabulary::collectives;
    options.capabilities = capabilities;
    MemoryPolicy& memory = options.limits.memory;
    memory.donate = number % 3 == 0;
    const auto free = synthesize(problem, options);
    if (!free || number % 4 < 2) return options;
    memory.staging_bytes = Index{1} << 20;
    memory.footprint_bytes_max =
        limit_of(free->plan(), free->verdict().footprint_bytes, number / 4 % 8, memory.staging_bytes);
    return options;
}

struct Tally {
    std::array<std::size_t, 3> of_execution = {};
    std::size_t exact = 0;  ///< footprints
};

void expect_kept(Backend& backend, const Judged<Plan>& promised, Tally& tally) {
    const Plan& plan = promised.plan();
    const Execution& execution = promised.execution();
    const Verdict& verdict = promised.verdict();
    Witness witness(backend);
    auto executor = Executor::prepare(promised, witness);
    ASSERT_TRUE(executor) << executor.error().message << '\n' << format(plan);
    ++tally.of_execution[execution.index()];
    EXPECT_EQ(std::ssize(witness.given), piece_count(execution));
    for (const RankPlan& piece : witness.given) EXPECT_EQ(piece.steps.size(), steps_that_run(plan, execution));
    // The schedule has a plain all-reduce, which receives more than a native one. For a permute, the verdict assumes
    // that the largest tile moves. With several uneven steps, the verdict may exceed the total of every rank.
    const auto has = [&](StepKind kind) {
        return std::ranges::any_of(plan.steps, [&](const Step& step) { return step.kind == kind; });
    };
    const bool even = divides(plan.source) && divides(plan.target);
    if (!has(StepKind::all_reduce)) {
        const Index received = received_bytes(witness.given, backend.rank());
        EXPECT_LE(received, verdict.received_bytes_max_device);
        const bool exact = harness().count_true(backend, received == verdict.received_bytes_max_device) > 0;
        EXPECT_TRUE(exact || (has(StepKind::permute) && !even));
    }
    const Index held = executor->footprint_bytes() - executor->staging_bytes();
    EXPECT_LE(held, verdict.footprint_bytes);
    // Pieces may find room in the ends if they lie dense there, which is not promised.
    if (even && same_devices(plan.source.mesh, plan.target.mesh) && !std::holds_alternative<Split>(execution)) {
        ++tally.exact;
        EXPECT_GT(harness().count_true(backend, held == verdict.footprint_bytes), 0);
    }
    Workbench bench(Item{plan}, backend.rank(), 5, executor->workspace_bytes(), promised.limits().memory.donate);
    const auto done = executor->run(bench.buffers());
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(bench.wrong(), "");
}

void tell(Backend& backend, const Tally& tally) {
    if (backend.rank() != 0) return;
    std::cout << fmt::format("{} as steps, {} as one exchange, {} split; {} footprints exact\n", tally.of_execution[0],
                             tally.of_execution[1], tally.of_execution[2], tally.exact);
}

TEST(Promise, WhatAPlanSaysIsWhatRuns) {
    const Index ranks = harness().ranks();
    const auto wanted = static_cast<std::uint64_t>(test::long_run() ? 1000 : test::cases(120));
    std::vector<std::string> questions;
    for (std::uint64_t seed = 1; seed <= wanted; ++seed) {
        questions.push_back(harness().from_rank_0(
            [&] { return seed % 2 == 0 ? test::random_question(seed, ranks) : test::random_pair(seed, ranks); }));
    }
    harness().on_every_rank([&](Backend& backend) {
        Tally tally;
        for (std::size_t i = 0; i < questions.size(); ++i) {
            SCOPED_TRACE(fmt::format("question {}\n{}", i + 1, questions[i]));
            const Problem problem = test::problem_of(questions[i]);
            // If summands arise on the way, the plan chooses which device keeps the value.
            const Index summands = summand_count(problem.target);
            if (summands > 1 && summands != summand_count(problem.source)) continue;
            const Options options = options_of(problem, i / 2, backend.capabilities());
            const auto made = synthesize(problem, options);
            if (!made) continue;
            const bool exchange = made->plan().steps.size() == 1 && made->plan().steps[0].kind == StepKind::exchange;
            EXPECT_EQ(std::holds_alternative<AsOneExchange>(made->execution()),
                      options.capabilities.one_exchange && exchange);
            expect_kept(backend, *made, tally);
            if (testing::Test::HasFailure()) return;
        }
        tell(backend, tally);
        EXPECT_GT(tally.exact, questions.size() / 8);
        EXPECT_EQ(tally.of_execution[1] > 0, backend.capabilities().one_exchange && ranks > 1);
        EXPECT_GT(tally.of_execution[0], 0U);
    });
}

// Steps written by hand, with larger tiles between source and target than a search would leave.
TEST(Promise, StepsRunAsItIsChosenForThem) {
    const Index ranks = harness().ranks();
    const auto wanted = static_cast<std::uint64_t>(test::long_run() ? 1000 : test::cases(80));
    std::vector<std::string> plans;
    for (std::uint64_t seed = 1; seed <= wanted; ++seed)
        plans.push_back(harness().from_rank_0([&] { return format(test::random_chain(seed, ranks)); }));
    harness().on_every_rank([&](Backend& backend) {
        Tally tally;
        for (std::uint64_t i = 0; i < plans.size(); ++i) {
            SCOPED_TRACE(fmt::format("chain {}\n{}", i + 1, plans[i]));
            const Plan plan = parse_plan(plans[i]).value();
            MemoryPolicy memory{.donate = i % 3 == 0, .staging_bytes = Index{1} << 20};
            const Index whole = check(plan, {.memory = {.donate = memory.donate}})->footprint_bytes;
            if (i % 4 > 0) memory.footprint_bytes_max = limit_of(plan, whole, i / 4 % 8, memory.staging_bytes);
            const Execution execution = choose_execution(plan, backend.capabilities(), memory,
                                                         i % 2 == 0 ? Vocabulary::all : Vocabulary::collectives);
            const auto judged = judge(plan, execution, {.memory = memory});
            // If the plan cannot run under the limit, no rank gets another answer.
            if (!judged) {
                EXPECT_EQ(Executor::prepare(judge(plan, execution, {.memory = memory}), backend).error().code,
                          Code::infeasible);
                continue;
            }
            expect_kept(backend, *judged, tally);
            if (testing::Test::HasFailure()) return;
        }
        tell(backend, tally);
        if (ranks == 1 || wanted < 80) return;
        for (const std::size_t runs : tally.of_execution) EXPECT_GT(runs, 0U);
    });
}

}  // namespace
}  // namespace reshard::conformance
