// What a run holds is what it was said to hold: by the backend's own count, and by the kernel's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <fstream>

#include "harness.hpp"
#include "move.hpp"
#include "reshard/mpi.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

// Bytes of this process that are its own, and its share of what it shares.
Index proportional_bytes() {
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

std::unique_ptr<Backend> fresh_backend(bool shared_memory) {
    mpi::BackendOptions options;
    options.shared_memory = shared_memory;
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
    EXPECT_TRUE(backend);
    return backend ? std::move(*backend) : nullptr;
}

// Memory for one array from the backend, bound and run once.
struct Held {
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;
    std::unique_ptr<Memory> workspace;

    Held(Backend& backend, Executor& executor) {
        const RankPlan& plan = executor.plans().front();
        for (auto [memory, bytes] : {std::pair{&source, plan.source_bytes}, std::pair{&target, plan.target_bytes},
                                     std::pair{&workspace, executor.workspace_bytes()}}) {
            auto taken = backend.allocate(bytes);
            EXPECT_TRUE(taken);
            *memory = std::move(*taken);
            std::ranges::fill((*memory)->bytes(), std::byte{1});
        }
        EXPECT_TRUE(executor.run(source->bytes(), target->bytes(), workspace->bytes()));
    }
};

Plan gathering_plan(Index ranks, Index rows) {
    return *plan_of(fmt::format("x={}", ranks), fmt::format("f32[{}@x,256]", rows), exchange,
                    fmt::format("f32[{},256@x]", rows));
}

TEST(Footprint, TheBackendCountsWhatWasStated) {
    for (const bool shared_memory : {true, false}) {
        auto backend = fresh_backend(shared_memory);
        ASSERT_TRUE(backend);
        for (const Index rows : {Index{64}, Index{4096}}) {
            auto executor = Executor::prepare(gathering_plan(backend->size(), rows), *backend);
            ASSERT_TRUE(executor) << executor.error().message;
            const Held held(*backend, *executor);
            EXPECT_EQ(backend->memory_use().held_bytes, executor->footprint_bytes());
            EXPECT_EQ(backend->memory_use().most_bytes, executor->footprint_bytes());
        }
    }
}

// Sums stage boxes, and go by messages on one node too.
TEST(Footprint, StagingIsCounted) {
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    const std::string mesh = fmt::format("x={}", backend->size());
    const Plan plan = *plan_of(mesh, "f32[48,64]{U:x}", reduce_scatter, "f32[48@x,64]");
    auto executor = Executor::prepare(plan, *backend);
    ASSERT_TRUE(executor) << executor.error().message;
    const Held held(*backend, *executor);
    EXPECT_EQ(backend->memory_use().held_bytes, executor->footprint_bytes());
    if (backend->size() > 2) {
        EXPECT_GT(executor->staging_bytes(), 48 * 64 * 4 / backend->size());
    }
}

TEST(Footprint, ALimitMakesWindowsSmaller) {
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    const Plan plan = gathering_plan(backend->size(), 4096);
    auto free = Executor::prepare(plan, *backend);
    ASSERT_TRUE(free);
    const Index ends = free->footprint_bytes() - free->staging_bytes();
    const PrepareOptions tight{ends + 16384};
    auto bounded = Executor::prepare(plan, *backend, {}, tight);
    ASSERT_TRUE(bounded) << bounded.error().message;
    EXPECT_LE(bounded->footprint_bytes(), ends + 16384);
    if (backend->size() > 1 && free->describe() != "messages") {
        EXPECT_GT(free->staging_bytes(), bounded->staging_bytes());
    }
    std::vector<Workbench> benches;
    benches.emplace_back(Item{plan}, backend->rank(), 1, bounded->workspace_bytes());
    const Buffers buffers = benches.front().buffers();
    ASSERT_TRUE(bounded->run(buffers.source, buffers.target, buffers.workspace));
    EXPECT_EQ(benches.front().wrong(), "");
}

TEST(Footprint, ALimitBelowTheEndsIsInfeasible) {
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    const PrepareOptions hopeless{1000};
    const auto executor = Executor::prepare(gathering_plan(backend->size(), 4096), *backend, {}, hopeless);
    ASSERT_FALSE(executor);
    EXPECT_EQ(executor.error().code, Code::infeasible) << executor.error().message;
}

// A plan of several steps whose workspace does not fit runs as one exchange, by messages as well.
TEST(Footprint, ALimitBelowTheWorkspaceFusesThePlan) {
    if (harness().ranks() != 4) GTEST_SKIP() << "the plan is for four devices";
    auto backend = fresh_backend(false);
    ASSERT_TRUE(backend);
    const auto mesh = *parse_mesh("x=2,y=2");
    const auto layout = [&](const char* text) { return *parse_layout(mesh, text); };
    const Plan plan{layout("f32[64@x,64@y]"),
                    layout("f32[64,64@y]"),
                    {{all_to_all, layout("f32[64,64@(y,x)]")}, {all_gather, layout("f32[64,64@y]")}}};
    auto free = Executor::prepare(plan, *backend);
    ASSERT_TRUE(free) << free.error().message;
    ASSERT_GT(free->workspace_bytes(), 0);
    const PrepareOptions tight{free->footprint_bytes() - 1};
    auto bounded = Executor::prepare(plan, *backend, {}, tight);
    ASSERT_TRUE(bounded) << bounded.error().message;
    EXPECT_EQ(bounded->workspace_bytes(), 0);
    Workbench bench(Item{plan}, backend->rank(), 1, 0);
    const Buffers buffers = bench.buffers();
    ASSERT_TRUE(bounded->run(buffers.source, buffers.target, buffers.workspace));
    EXPECT_EQ(bench.wrong(), "");
}

// Against the kernel: after a run to warm up, memory grows by what is stated and little else.
TEST(Footprint, TheKernelCountsTheSame) {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer's own memory counts";
#endif
    if (proportional_bytes() < 0) GTEST_SKIP() << "there is no /proc/self/smaps_rollup";
    auto backend = fresh_backend(true);
    ASSERT_TRUE(backend);
    const Plan warm_up = gathering_plan(backend->size(), 64);
    {
        auto executor = Executor::prepare(warm_up, *backend);
        ASSERT_TRUE(executor);
        const Held held(*backend, *executor);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const Index before = proportional_bytes();
    MPI_Barrier(MPI_COMM_WORLD);  // nobody takes memory while another still counts
    auto executor = Executor::prepare(gathering_plan(backend->size(), 65536), *backend);
    ASSERT_TRUE(executor);
    const Held held(*backend, *executor);
    MPI_Barrier(MPI_COMM_WORLD);
    const Index growth = sum_of_ranks(proportional_bytes() - before);
    const Index stated = sum_of_ranks(executor->footprint_bytes());
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_LE(growth, stated + stated / 20 + backend->size() * (Index{8} << 20));
    EXPECT_GE(growth, stated - stated / 20 - backend->size() * (Index{8} << 20));
}

}  // namespace
}  // namespace reshard::conformance
