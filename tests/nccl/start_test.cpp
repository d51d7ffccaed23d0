// Starts of runs, streams and graphs, communicators and memory.
#include <gtest/gtest.h>

#include "doubles/find.hpp"
#include "reshard/backends/local.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
#include "trial.hpp"

namespace reshard::nccl::test {
namespace {

using enum StepKind;

constexpr Index ranks = 4;

// Packed messages, and all four collectives on the whole communicator and on groups.
std::vector<Plan> plans() {
    return {plan_of("x=4", "f32[60@x,60]", {{exchange, "f32[60,60@x]"}, {all_gather, "f32[60,60]"}}),
            plan_of("x=2,y=2", "f32[64@(x,y),64]", {{all_to_all, "f32[64@x,64@y]"}, {all_gather, "f32[64,64@y]"}}),
            plan_of("x=2,y=2", "f32[32,32]{U:y}", {{reduce_scatter, "f32[32@y,32]"}, {all_gather, "f32[32,32]"}}),
            plan_of("x=2,y=2", "f32[32@x,16]{U:y}", {{all_reduce, "f32[32@x,16]"}}),
            plan_of("x=2,y=2", "f32[33@x,7@y]", {{exchange, "f32[33@y,7@x]"}})};
}

class Leave final : public testing::Environment {
public:
    void TearDown() override { Party::leave(); }
};
const testing::Environment* const leave = testing::AddGlobalTestEnvironment(new Leave);

void on_backends(const Options& options, const std::function<void(Backend&, Party&)>& body) {
    Party party(ranks);
    party.on_every_rank([&](ncclComm_t communicator, Index) {
        auto backend = make_backend(communicator, options);
        ASSERT_TRUE(backend) << backend.error().message;
        body(**backend, party);
        party.count_true(true);
    });
}

Options with_staging(Index bytes) {
    Options options;
    options.staging_bytes_max = bytes;
    return options;
}

TEST(Start, AllocatesNothingAndWaitsForNothing) {
    if (!on_doubles()) GTEST_SKIP() << "calls are counted by the doubles";
    auto* const watch = found<void(bool)>("gpu_double_watch");
    auto* const counted = found<int()>("gpu_double_counted");
    auto* const live = found<std::size_t(int)>("gpu_double_live_bytes");
    for (const Index staging : {Index{1} << 20, Index{2048}}) {
        for (const Plan& plan : plans()) {
            const Wanted data = wanted(plan, 3);
            on_backends(with_staging(staging), [&](Backend& backend, Party& party) {
                auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
                ASSERT_TRUE(executor) << executor.error().message;
                Trial trial(backend, data, executor->workspace_bytes());
                const Buffers buffers = trial.buffers();
                auto bound = executor->bind(std::span(&buffers, 1));
                ASSERT_TRUE(bound);
                party.count_true(true);
                const auto device = static_cast<int>(backend.rank());
                const std::size_t before = live(device);
                watch(true);
                auto run = (*bound)->start();
                watch(false);
                EXPECT_EQ(counted(), 0);
                EXPECT_EQ(live(device), before);
                ASSERT_TRUE(run && (*run)->wait());
                EXPECT_EQ(live(device), before);
                EXPECT_TRUE(trial.right(data));
            });
        }
    }
}

TEST(Start, OnTheCallersStreamInOrderWithTheCallersWork) {
    const Wanted first = wanted(plans().front(), 4);
    const Wanted second = wanted(plans().front(), 5);
    on_backends({}, [&](Backend& backend, Party&) {
        cudaStream_t stream = nullptr;
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        auto executor = Executor::prepare(judge(first.plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        Trial trial(backend, first, executor->workspace_bytes());
        const Buffers buffers = trial.buffers();
        auto bound = executor->bind(std::span(&buffers, 1));
        ASSERT_TRUE(bound);
        const auto& source = second.sources[static_cast<std::size_t>(backend.rank())];
        must(cudaMemcpyAsync(trial.source().data(), source.data(), source.size(), cudaMemcpyHostToDevice, stream),
             "cudaMemcpyAsync");
        auto run = (*bound)->start_on(stream);
        ASSERT_TRUE(run) << run.error().message;
        ASSERT_TRUE((*run)->wait());
        EXPECT_TRUE(trial.right(second));
        must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    });
}

TEST(Start, IsTakenIntoAGraph) {
    for (const Index staging : {Index{1} << 20, Index{2048}}) {
        for (const Plan& plan : plans()) {
            const Wanted first = wanted(plan, 6);
            const Wanted second = wanted(plan, 7);
            on_backends(with_staging(staging), [&](Backend& backend, Party&) {
                cudaStream_t stream = nullptr;
                must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
                auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
                ASSERT_TRUE(executor) << executor.error().message;
                Trial trial(backend, first, executor->workspace_bytes());
                const Buffers buffers = trial.buffers();
                auto bound = executor->bind(std::span(&buffers, 1));
                ASSERT_TRUE(bound);
                must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
                auto run = (*bound)->start_on(stream);
                EXPECT_TRUE(run && *(*run)->test()) << (run ? "" : run.error().message);
                cudaGraph_t graph = nullptr;
                must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
                EXPECT_FALSE(trial.right(first));  // nothing ran yet
                cudaGraphExec_t ready = nullptr;
                must(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
                for (const Wanted* data : {&first, &second, &first}) {
                    trial.fill(*data);
                    must(cudaGraphLaunch(ready, stream), "cudaGraphLaunch");
                    must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
                    EXPECT_TRUE(trial.right(*data));
                }
                must(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
                must(cudaGraphDestroy(graph), "cudaGraphDestroy");
                must(cudaStreamDestroy(stream), "cudaStreamDestroy");
            });
        }
    }
}

TEST(Start, RegularStepsAreNcclsOwn) {
    if (!on_doubles()) GTEST_SKIP() << "calls are counted by the doubles";
    auto* const calls = found<int(const char*)>("nccl_double_calls");
    struct Row {
        Plan plan;
        const char* call;
    };
    const Row rows[] = {
        {plan_of("x=4", "f32[64@x,4]", {{all_gather, "f32[64,4]"}}), "ncclAllGather"},
        {plan_of("x=2,y=2", "f32[8,64@y]", {{all_gather, "f32[8,64]"}}), "ncclAllGather"},
        {plan_of("x=2,y=2", "f32[8,64]{U:x}", {{reduce_scatter, "f32[8@x,64]"}}), "ncclReduceScatter"},
        {plan_of("x=2,y=2", "f32[8,64]{U:x}", {{all_reduce, "f32[8,64]"}}), "ncclAllReduce"},
        {plan_of("x=4", "f32[64@x,64]", {{all_to_all, "f32[64,64@x]"}}), "ncclAlltoAll"},
    };
    for (const Row& row : rows) {
        const Wanted data = wanted(row.plan, 8);
        on_backends({}, [&](Backend& backend, Party& party) {
            auto executor = Executor::prepare(judge(row.plan, backend.capabilities()), backend);
            ASSERT_TRUE(executor);
            Trial trial(backend, data, executor->workspace_bytes());
            party.count_true(true);
            const int before = calls(row.call);
            const int sends = calls("ncclSend");
            party.count_true(true);
            const Buffers buffers = trial.buffers();
            auto bound = executor->bind(std::span(&buffers, 1));
            ASSERT_TRUE(bound);
            auto run = (*bound)->start();
            ASSERT_TRUE(run && (*run)->wait());
            EXPECT_TRUE(trial.right(data));
            party.count_true(true);
            EXPECT_EQ(calls(row.call) - before, ranks) << row.call;
            EXPECT_EQ(calls("ncclSend"), sends) << row.call;
            party.count_true(true);
        });
    }
}

TEST(Start, GroupsAreKeptAndBounded) {
    if (!on_doubles()) GTEST_SKIP() << "calls are counted by the doubles";
    auto* const calls = found<int(const char*)>("nccl_double_calls");
    const Plan rows = plan_of("x=2,y=2", "f32[8@x,8]", {{all_gather, "f32[8,8]"}});
    const Plan columns = plan_of("x=2,y=2", "f32[8@y,8]", {{all_gather, "f32[8,8]"}});
    Options options;
    options.communicators_max = 1;
    on_backends(options, [&](Backend& backend, Party& party) {
        const auto splits_of = [&](const Plan& plan) {
            party.count_true(true);
            const int before = calls("ncclCommSplit");
            party.count_true(true);
            EXPECT_TRUE(Executor::prepare(judge(plan, backend.capabilities()), backend));
            party.count_true(true);
            const int splits = calls("ncclCommSplit") - before;
            party.count_true(true);
            return splits;
        };
        EXPECT_EQ(splits_of(rows), ranks);
        EXPECT_EQ(splits_of(rows), 0);         // kept
        EXPECT_EQ(splits_of(columns), ranks);  // the other communicator made room, since no plan holds it
        auto held = Executor::prepare(judge(columns, backend.capabilities()), backend);
        ASSERT_TRUE(held);
        EXPECT_EQ(splits_of(rows), 0);  // no room, so it uses the whole communicator
        EXPECT_GT(communicator_bytes(backend).value(), 0);
    });
}

// The host never touches the tile: kernels cast its elements and fill its padding.
TEST(Start, RedistributeCastsAndPadsOnTheDevice) {
    auto* const launches = found<int(const char*)>("gpu_double_launches");
    const auto fills = [&] {
        int all = 0;
        for (const char* kernel : {"reshard_fill_4", "reshard_fill_8", "reshard_fill_16"})
            all += launches == nullptr ? 0 : launches(kernel);
        return all;
    };
    const Mesh mesh{{"x", ranks}};
    const Layout source = parse_layout(mesh, "f64[8@x,6]").value();
    const Layout target = parse_layout(mesh, "f32[12@x,10]").value();
    const int before = fills();
    on_backends({}, [&](Backend& backend, Party& party) {
        const Index rank = backend.rank();
        const std::vector<double> own(12, 1.0 / 3 + static_cast<double>(rank));
        std::vector<float> got(30);
        auto in = backend.allocate(std::ssize(std::as_bytes(std::span(own)))).value();
        auto out = backend.allocate(std::ssize(std::as_bytes(std::span(got)))).value();
        ASSERT_TRUE(backend.put(std::as_bytes(std::span(own)), in->bytes()));
        const MoveOptions changes{.cast = true, .fill = fill_of(-2.5F)};
        for (int call = 0; call < 2; ++call) {
            const auto moved = redistribute(backend, source, target, in->bytes(), out->bytes(), changes);
            ASSERT_TRUE(moved) << moved.error().message;
            ASSERT_TRUE(backend.get(out->bytes(), std::as_writable_bytes(std::span(got))));
            for (Index i = 0; i < 3; ++i)
                for (Index j = 0; j < 10; ++j) {
                    const Index row = rank * 3 + i;  // rows 2r and 2r + 1 of the source are rank r's
                    const float wanted =
                        row < 8 && j < 6 ? static_cast<float>(1.0 / 3 + static_cast<double>(row / 2)) : -2.5F;
                    EXPECT_EQ(got[static_cast<std::size_t>(i * 10 + j)], wanted) << row << ',' << j;
                }
        }
        party.count_true(true);
    });
    if (!on_doubles()) return;
    EXPECT_GE(fills() - before, 2 * ranks);
}

TEST(Start, CopyEnginesAreAskedForWhereTheyAreWanted) {
    if (!on_doubles()) GTEST_SKIP() << "calls are counted by the doubles";
    auto* const calls = found<int(const char*)>("nccl_double_calls");
    const Plan plan = plan_of("x=4", "f32[256@x,256]", {{all_gather, "f32[256,256]"}});
    const Wanted data = wanted(plan, 9);
    for (const bool wanted : {false, true}) {
        Options options;
        options.copy_engines = wanted;
        const int splits = calls("ncclCommSplit");
        const int asked = calls("NCCL_CTA_POLICY_ZERO");
        on_backends(options, [&](Backend& backend, Party&) {
            auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
            ASSERT_TRUE(executor);
            Trial trial(backend, data, executor->workspace_bytes());
            ASSERT_TRUE(executor->run(trial.buffers()));
            EXPECT_TRUE(trial.right(data));
        });
        EXPECT_GE(calls("ncclCommSplit") - splits, ranks);
        EXPECT_EQ(calls("NCCL_CTA_POLICY_ZERO") - asked, wanted ? calls("ncclCommSplit") - splits : 0);
    }
}

TEST(Start, StagingStaysWithinItsBound) {
    const Plan plan = plan_of("x=4", "f32[256@x,256]", {{exchange, "f32[256,256@x]"}});
    const Wanted data = wanted(plan, 9);
    for (const Index bound : {Index{1} << 14, Index{1} << 16, Index{1} << 20}) {
        on_backends(with_staging(bound), [&](Backend& backend, Party&) {
            auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
            ASSERT_TRUE(executor);
            EXPECT_GT(executor->staging_bytes(), 0);
            EXPECT_LE(executor->staging_bytes(), bound + 2 * 4096);  // whole pages
            Trial trial(backend, data, executor->workspace_bytes());
            const Buffers buffers = trial.buffers();
            ASSERT_TRUE(executor->run(buffers));
            EXPECT_TRUE(trial.right(data));
        });
    }
}

// The caller's own device memory: NCCL knows it until the registration ends.
TEST(Start, MemoryOfTheCallerIsRegistered) {
    const Plan plan = plan_of("x=4", "f32[256@x,256]", {{all_gather, "f32[256,256]"}});
    const Wanted data = wanted(plan, 11);
    on_backends({}, [&](Backend& backend, Party& party) {
        auto* const calls = on_doubles() ? found<int(const char*)>("nccl_double_calls") : nullptr;
        const auto called = [&](const char* name) { return calls == nullptr ? 0 : calls(name); };
        auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor);
        Trial trial(backend, data, executor->workspace_bytes());
        const std::size_t bytes = trial.source().size();
        void* own = nullptr;
        must(cudaMalloc(&own, bytes), "cudaMalloc");
        const std::span<std::byte> source(static_cast<std::byte*>(own), bytes);
        ASSERT_TRUE(backend.put(data.sources[static_cast<std::size_t>(backend.rank())], source));
        party.count_true(true);
        const int registered = called("ncclCommRegister");
        const int ended = called("ncclCommDeregister");
        party.count_true(true);
        auto registration = backend.register_memory(source);
        ASSERT_TRUE(registration) << registration.error().message;
        auto again = backend.register_memory(source.subspan(64));
        ASSERT_TRUE(again) << again.error().message;
        Buffers buffers = trial.buffers();
        buffers.source = source;
        ASSERT_TRUE(executor->run(buffers));
        EXPECT_TRUE(trial.right(data));
        EXPECT_TRUE(registration->end());
        EXPECT_TRUE(registration->end()) << "nothing is left to end";
        again = Registration();
        party.count_true(true);
        if (calls != nullptr) {
            EXPECT_EQ(called("ncclCommRegister") - registered, 2 * ranks);
            EXPECT_EQ(called("ncclCommDeregister") - ended, 2 * ranks);
        }
        party.count_true(true);
        must(cudaFree(own), "cudaFree");
    });
}

TEST(Start, WindowsAndMemory) {
    on_backends({}, [](Backend& backend, Party&) {
        local::World another(1);
        EXPECT_EQ(communicator_bytes(another.rank(0)).error().code, Code::usage);
        EXPECT_EQ(allocate_window(another.rank(0), 1).error().code, Code::usage);
        auto window = allocate_window(backend, 1 << 16);
        ASSERT_TRUE(window) << window.error().message;
        EXPECT_EQ((*window)->bytes().size(), std::size_t{1} << 16);
        EXPECT_TRUE(backend.allocate(0));
        EXPECT_FALSE(backend.allocate(-1));
        const auto too_much = backend.allocate(Index{1} << 50);
        ASSERT_FALSE(too_much);
        EXPECT_EQ(too_much.error().code, Code::backend);
    });
    EXPECT_FALSE(make_backend(nullptr));
    Options negative;
    negative.staging_bytes_max = -1;
    EXPECT_EQ(make_backend(nullptr, negative).error().code, Code::usage);
    Options hasty;
    hasty.timeout = std::chrono::milliseconds(0);
    EXPECT_EQ(make_backend(nullptr, hasty).error().code, Code::usage);
}

}  // namespace
}  // namespace reshard::nccl::test
