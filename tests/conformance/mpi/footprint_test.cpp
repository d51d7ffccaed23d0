// A run holds as much memory as was stated, by the backend's own count and by the kernel's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>

#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/synthesize.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

// The private bytes of this process and its share of shared bytes, without the memory that malloc keeps.
Index proportional_bytes() {
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    std::ifstream file("/proc/self/smaps_rollup");
    for (std::string word; file >> word;) {
        Index kibibytes = 0;
        if (word == "Pss:" && file >> kibibytes) return kibibytes * 1024;
    }
    return -1;
}

Index sum_of_ranks(Index mine) {
    Index all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

// One node, ranks that share nothing, and nodes of two ranks.
struct Grouping {
    bool shared_memory;
    Index ranks_per_node;
};
constexpr std::array<Grouping, 3> groupings = {{{true, 0}, {false, 0}, {true, 2}}};

std::unique_ptr<Backend> fresh_backend(bool shared_memory, Index ranks_per_node = 0) {
    mpi::Options options;
    options.shared_memory = shared_memory;
    options.ranks_per_node = ranks_per_node;
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
    EXPECT_TRUE(backend);
    return backend ? std::move(*backend) : nullptr;
}

// One array in memory from the backend, bound and run once.
struct Held {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;
    std::unique_ptr<Memory> workspace;

    Held(Backend& backend, Executor& executor, bool donate = false) {
        const RankPlan& plan = executor.plans().front();
        for (auto [memory, bytes] : {std::pair{&source, plan.source_bytes}, std::pair{&target, plan.target_bytes},
                                     std::pair{&workspace, executor.workspace_bytes()}}) {
            auto taken = backend.allocate(bytes);
            EXPECT_TRUE(taken);
            *memory = std::move(*taken);
            std::ranges::fill((*memory)->bytes(), std::byte{1});
        }
        Buffers buffers{source->bytes(), target->bytes(), workspace->bytes()};
        if (donate) buffers.donated = source->bytes();
        EXPECT_TRUE(executor.run(buffers));
    }
};

Plan gathering_plan(Index ranks, Index rows) {
    return *plan_of(fmt::format("x={}", ranks), fmt::format("f32[{}@x,256]", rows), exchange,
                    fmt::format("f32[{},256@x]", rows));
}

// Tiles of one size turn from rows to columns and back, so that two tiles lie between source and target.
Plan turning_plan(Index ranks, Index rows) {
    Plan plan = *plan_of(fmt::format("x={}", ranks), fmt::format("f32[{}@x,240]", rows), exchange,
                         fmt::format("f32[{},240@x]", rows));
    if (plan.steps.empty()) return plan;  // a single rank has nothing to turn
    const Step there = plan.steps.front();
    plan.steps = {there, {exchange, plan.source}, there};
    return plan;
}

TEST(Footprint, ADonatedSourceSavesAWorkspace) {
    for (const auto [shared_memory, ranks_per_node] : groupings) {
        for (const bool donate : {false, true}) {
            auto backend = fresh_backend(shared_memory, ranks_per_node);
            ASSERT_TRUE(backend);
            const Plan plan = turning_plan(backend->size(), 4320);
            auto executor =
                Executor::prepare(judge(plan, backend->capabilities(), {.memory = {.donate = donate}}), *backend);
            ASSERT_TRUE(executor) << executor.error().message;
            const Held held(*backend, *executor, donate);
            EXPECT_EQ(backend->memory_use().most_bytes, executor->footprint_bytes());
            const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
            const Execution execution = choose_execution(plan, backend->capabilities(), {.donate = donate});
            const Index judged = check(plan, execution, {.memory = {.donate = donate}})->footprint_bytes;
            EXPECT_EQ(executor->footprint_bytes() - executor->staging_bytes(), judged);
            // All ranks of one node run one exchange, which has no tiles between.
            const bool several = plan.steps.size() > 1;
            const bool one_node = shared_memory && (ranks_per_node == 0 || ranks_per_node >= backend->size());
            EXPECT_EQ(std::holds_alternative<AsOneExchange>(execution), several && one_node);
            EXPECT_EQ(executor->plans().front().steps.size(), several && !one_node ? 3U : 1U);
            EXPECT_EQ(judged, ends + (donate || one_node || !several ? 0 : tile_bytes(plan.source)));
        }
    }
}

TEST(Footprint, TheBackendCountsWhatWasStated) {
    for (const auto [shared_memory, ranks_per_node] : groupings) {
        auto backend = fresh_backend(shared_memory, ranks_per_node);
        ASSERT_TRUE(backend);
        for (const Index rows : {Index{64}, Index{4096}}) {
            auto executor =
                Executor::prepare(judge(gathering_plan(backend->size(), rows), backend->capabilities()), *backend);
            ASSERT_TRUE(executor) << executor.error().message;
            const Held held(*backend, *executor);
            EXPECT_EQ(backend->memory_use().held_bytes, executor->footprint_bytes());
            EXPECT_EQ(backend->memory_use().most_bytes, executor->footprint_bytes());
        }
    }
}

Plan adding_plan(Index ranks, StepKind kind, Index rows) {
    const char* target = kind == reduce_scatter ? "f32[{}@x,64]" : "f32[{},64]";
    return *plan_of(fmt::format("x={}", ranks), fmt::format("f32[{},64]{{U:x}}", rows), kind,
                    fmt::format(fmt::runtime(target), rows));
}

// With messages a sum stages pieces; inside a node it holds bounce buffers. Neither grows with the size of the sum.
TEST(Footprint, StagingOfSumsIsCounted) {
    for (const auto [shared_memory, ranks_per_node] : groupings) {
        auto backend = fresh_backend(shared_memory, ranks_per_node);
        ASSERT_TRUE(backend);
        for (const StepKind kind : {reduce_scatter, all_reduce}) {
            for (const Index rows : {Index{48}, Index{48 * 1024}}) {
                auto executor = Executor::prepare(
                    judge(adding_plan(backend->size(), kind, rows), backend->capabilities()), *backend);
                ASSERT_TRUE(executor) << executor.error().message;
                const Held held(*backend, *executor);
                EXPECT_EQ(backend->memory_use().held_bytes, executor->footprint_bytes());
                const bool inside = shared_memory && (ranks_per_node == 0 || backend->size() <= ranks_per_node);
                if (inside) {
                    const Index line_pairs = 128 * backend->size();  // one for each rank's signals
                    EXPECT_LE(executor->staging_bytes(), (Index{1} << 20) + 4096 + line_pairs) << executor->describe();
                }
                if (!inside && kind == reduce_scatter && backend->size() > 2) {
                    EXPECT_GT(executor->staging_bytes(), 0);
                    EXPECT_LE(executor->staging_bytes(), 8 * mpi::Options().piece_bytes) << "so many pieces";
                }
            }
        }
    }
}

TEST(Footprint, ALimitMakesWindowsOfSumsSmaller) {
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    for (const StepKind kind : {reduce_scatter, all_reduce}) {
        const Plan plan = adding_plan(backend->size(), kind, 4096);
        const Index limit = tile_bytes(plan.source) + tile_bytes(plan.target) + 16384;
        const MemoryPolicy tight{.footprint_bytes_max = limit};
        auto bounded = Executor::prepare(judge(plan, backend->capabilities(), {.memory = tight}), *backend);
        ASSERT_TRUE(bounded) << bounded.error().message;
        EXPECT_LE(bounded->footprint_bytes(), limit);
        Workbench bench(Item{plan}, backend->rank(), 1, bounded->workspace_bytes());
        const Buffers buffers = bench.buffers();
        ASSERT_TRUE(bounded->run(buffers));
        EXPECT_EQ(bench.wrong(), "");
    }
}

// With hardly any memory left, the arrays move without staging.
TEST(Footprint, ALimitMakesWindowsAndPiecesSmaller) {
    for (const auto [shared_memory, ranks_per_node] : groupings) {
        auto backend = fresh_backend(shared_memory, ranks_per_node);
        ASSERT_TRUE(backend);
        const Plan plan = gathering_plan(backend->size(), 4096);
        auto free = Executor::prepare(judge(plan, backend->capabilities()), *backend);
        ASSERT_TRUE(free);
        const Index ends = tile_bytes(plan.source) + tile_bytes(plan.target);
        for (const Index room : {Index{16384}, Index{200000}}) {
            SCOPED_TRACE(
                fmt::format("{} instead of {} bytes of staging: {}", room, free->staging_bytes(), free->describe()));
            auto bounded = Executor::prepare(
                judge(plan, backend->capabilities(), {.memory = {.footprint_bytes_max = ends + room}}), *backend);
            ASSERT_TRUE(bounded) << bounded.error().message;
            EXPECT_LE(bounded->footprint_bytes(), ends + room);
            Workbench bench(Item{plan}, backend->rank(), 1, bounded->workspace_bytes());
            const Buffers buffers = bench.buffers();
            ASSERT_TRUE(bounded->run(buffers));
            EXPECT_EQ(bench.wrong(), "");
        }
        if (backend->size() > 1) {
            EXPECT_GT(sum_of_ranks(free->staging_bytes()), 0);
        }
    }
}

TEST(Footprint, ALimitBelowTheEndsIsInfeasible) {
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    const MemoryPolicy hopeless{.footprint_bytes_max = 1000};
    const auto executor = Executor::prepare(
        judge(gathering_plan(backend->size(), 4096), backend->capabilities(), {.memory = hopeless}), *backend);
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().code, Code::infeasible) << executor.error().message;
}

// A plan of several steps runs as one exchange if its workspace does not fit, also with messages.
TEST(Footprint, ALimitBelowTheWorkspaceFusesThePlan) {
    if (harness().ranks() != 4) GTEST_SKIP() << "the plan is for four devices";
    auto backend = fresh_backend(false);
    ASSERT_TRUE(backend);
    const auto mesh = *parse_mesh("x=2,y=2");
    const auto layout = [&](const char* text) { return *parse_layout(mesh, text); };
    const Plan plan{layout("f32[64@x,64@y]"),
                    layout("f32[64,64@y]"),
                    {{all_to_all, layout("f32[64,64@(y,x)]")}, {all_gather, layout("f32[64,64@y]")}}};
    auto free = Executor::prepare(judge(plan, backend->capabilities()), *backend);
    ASSERT_TRUE(free) << free.error().message;
    ASSERT_GT(free->workspace_bytes(), 0);
    const MemoryPolicy tight{.footprint_bytes_max = free->footprint_bytes() - free->staging_bytes() - 1};
    auto bounded = Executor::prepare(judge(plan, backend->capabilities(), {.memory = tight}), *backend);
    ASSERT_TRUE(bounded) << bounded.error().message;
    EXPECT_EQ(bounded->workspace_bytes(), 0);
    Workbench bench(Item{plan}, backend->rank(), 1, 0);
    const Buffers buffers = bench.buffers();
    ASSERT_TRUE(bounded->run(buffers));
    EXPECT_EQ(bench.wrong(), "");
}

// Eight arrays that turn from rows to columns, each 1/8 of a rank's data.
std::vector<Problem> turning(Index ranks, Index rows) {
    const Plan plan = gathering_plan(ranks, rows);
    return std::vector<Problem>(8, {plan.source, plan.target});
}

Index larger_tile(const Problem& problem) { return std::max(tile_bytes(problem.source), tile_bytes(problem.target)); }

// Runs the list bucket by bucket. Targets are allocated just before, sources freed just after. Calls `at_most` in the
// middle of every bucket.
void run_bucket_by_bucket(Backend& backend, Executor& executor, const std::function<void()>& at_most) {
    std::vector<std::unique_ptr<Memory>> sources;
    for (const RankPlan& plan : executor.plans()) {
        sources.push_back(backend.allocate(plan.source_bytes).value());
        std::ranges::fill(sources.back()->bytes(), static_cast<std::byte>(sources.size()));
    }
    std::vector<std::unique_ptr<Memory>> targets(sources.size());
    for (std::size_t bucket = 0; bucket < executor.bucket_count(); ++bucket) {
        std::vector<Buffers> buffers;
        for (const std::size_t array : executor.bucket(bucket)) {
            targets[array] = backend.allocate(executor.plans()[array].target_bytes).value();
            buffers.push_back({{}, targets[array]->bytes(), {}, sources[array]->bytes()});
        }
        auto bound = executor.bind(bucket, buffers);
        ASSERT_TRUE(bound) << bound.error().message;
        auto ticket = (*bound)->start();
        ASSERT_TRUE(ticket && (*ticket)->wait());
        at_most();
        for (const std::size_t array : executor.bucket(bucket)) sources[array].reset();
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const auto right = [&](std::byte byte) { return byte == static_cast<std::byte>(i + 1); };
        EXPECT_TRUE(std::ranges::all_of(targets[i]->bytes(), right)) << "array " << i;
    }
}

// One limit for the list. The backend's allocations and staging never exceed it, and equal the stated bytes.
TEST(Footprint, AListStaysUnderItsLimit) {
    for (const bool shared_memory : {true, false}) {
        auto backend = fresh_backend(shared_memory);
        ASSERT_TRUE(backend);
        const std::vector<Problem> problems = turning(backend->size(), 64 * backend->size());
        const Index tile = larger_tile(problems.front());
        std::size_t before = 9;
        for (const Index room : {Index{1}, Index{2}, Index{4}, Index{8}}) {  // arrays in flight
            constexpr Index staging = Index{1} << 17;
            const Index limit = (8 + room) * tile + staging;
            const MemoryPolicy memory{.footprint_bytes_max = limit, .donate = true, .staging_bytes = staging};
            const auto made = synthesize(std::span<const Problem>(problems), {}, memory);
            ASSERT_TRUE(made) << made.error().message;
            EXPECT_LT(made->list().buckets.size(), before);
            before = made->list().buckets.size();
            auto counting = fresh_backend(shared_memory);  // its high-water mark starts at zero
            auto executor = Executor::prepare(*made, *counting);
            ASSERT_TRUE(executor) << executor.error().message;
            run_bucket_by_bucket(*counting, *executor, [] {});
            EXPECT_LE(counting->memory_use().most_bytes, limit);
            EXPECT_EQ(counting->memory_use().most_bytes, executor->footprint_bytes());
        }
        EXPECT_EQ(before, 1U);
        const Index floor = synthesize(std::span<const Problem>(problems), {}, {.donate = true})->floor_bytes;
        EXPECT_LE(floor, 9 * tile);
        const auto refused =
            synthesize(std::span<const Problem>(problems), {}, {.footprint_bytes_max = floor - 1, .donate = true});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::infeasible);
    }
}

// Makes MPI and the backend allocate what they need once, for any move.
void warm_up(Backend& backend) {
    auto executor = Executor::prepare(judge(gathering_plan(backend.size(), 64), backend.capabilities()), backend);
    ASSERT_TRUE(executor);
    const Held held(backend, *executor);
}

// Expects that the memory of all ranks grows by the stated bytes when a plan has run.
void expect_growth(Backend& backend, const Plan& plan, bool donate) {
    warm_up(backend);
    MPI_Barrier(MPI_COMM_WORLD);
    const Index before = proportional_bytes();
    MPI_Barrier(MPI_COMM_WORLD);  // no rank allocates memory while another still counts
    auto executor = Executor::prepare(judge(plan, backend.capabilities(), {.memory = {.donate = donate}}), backend);
    ASSERT_TRUE(executor);
    const Held held(backend, *executor, donate);
    MPI_Barrier(MPI_COMM_WORLD);
    const Index growth = sum_of_ranks(proportional_bytes() - before);
    const Index stated = sum_of_ranks(executor->footprint_bytes());
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_LE(growth, stated + stated / 20 + backend.size() * (Index{8} << 20));
    EXPECT_GE(growth, stated - stated / 20 - backend.size() * (Index{8} << 20));
}

// Compares with the kernel: after a warm-up run, memory grows by the stated bytes and little else.
TEST(Footprint, TheKernelCountsTheSame) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
    if (proportional_bytes() < 0) GTEST_SKIP() << "there is no /proc/self/smaps_rollup";
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    expect_growth(*backend, gathering_plan(backend->size(), 65536), false);
}

// With messages, the tiles between use the donated source: the kernel sees no workspace either.
TEST(Footprint, TheKernelCountsTheSameOfADonatedSource) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
    if (proportional_bytes() < 0) GTEST_SKIP() << "there is no /proc/self/smaps_rollup";
    auto backend = fresh_backend(false);
    ASSERT_TRUE(backend);
    expect_growth(*backend, turning_plan(backend->size(), 72000), true);
}

// Freed sources are really freed, also in the mappings of peers.
TEST(Footprint, TheKernelCountsTheSameOfAList) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
    if (proportional_bytes() < 0) GTEST_SKIP() << "there is no /proc/self/smaps_rollup";
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    warm_up(*backend);
    const std::vector<Problem> problems = turning(backend->size(), 8192 * backend->size());  // 64 MiB of tiles a rank
    const Index limit = 9 * larger_tile(problems.front()) + (Index{1} << 17);
    const MemoryPolicy memory{.footprint_bytes_max = limit, .donate = true, .staging_bytes = Index{1} << 17};
    const auto made = synthesize(std::span<const Problem>(problems), {}, memory);
    ASSERT_TRUE(made) << made.error().message;
    MPI_Barrier(MPI_COMM_WORLD);
    const Index before = proportional_bytes();
    MPI_Barrier(MPI_COMM_WORLD);
    auto executor = Executor::prepare(*made, *backend);
    ASSERT_TRUE(executor) << executor.error().message;
    Index most = 0;
    run_bucket_by_bucket(*backend, *executor, [&] {
        MPI_Barrier(MPI_COMM_WORLD);
        most = std::max(most, sum_of_ranks(proportional_bytes() - before));
        MPI_Barrier(MPI_COMM_WORLD);
    });
    const Index stated = sum_of_ranks(executor->footprint_bytes());
    EXPECT_LE(most, stated + stated / 20 + backend->size() * (Index{8} << 20));
    EXPECT_GE(most, stated - stated / 20 - backend->size() * (Index{8} << 20));
}

}  // namespace
}  // namespace reshard::conformance
