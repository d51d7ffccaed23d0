// Every failure becomes an error that names the step, on every rank, within the timeout.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>

#include "doubles/find.hpp"
#include "support/time.hpp"
#include "trial.hpp"

namespace reshard::nccl::test {
namespace {

using enum StepKind;
using namespace std::chrono_literals;

constexpr Index ranks = 4;

Plan two_steps() { return plan_of("x=4", "f32[64@x,64]", {{exchange, "f32[64,64@x]"}, {all_gather, "f32[64,64]"}}); }

Options patient(std::chrono::milliseconds timeout) {
    Options options;
    options.timeout = timeout;
    return options;
}

bool names(const Error& error, std::string_view what) { return error.message.find(what) != std::string::npos; }

class Faults : public testing::Test {
protected:
    void SetUp() override {
        if (!on_doubles()) GTEST_SKIP() << "faults are injected into the doubles only";
    }
};

// Runs the body on every rank with a backend that gives up after `timeout`.
void on_backends(std::chrono::milliseconds timeout, const std::function<void(Backend&, Party&)>& body) {
    Party party(ranks);
    party.on_every_rank([&](ncclComm_t communicator, Index) {
        auto backend = make_backend(communicator, patient(timeout));
        ASSERT_TRUE(backend) << backend.error().message;
        body(**backend, party);
        party.count_true(true);
    });
}

TEST_F(Faults, ACountThatDiffersIsSaidByAllRanksWhenTheyPrepare) {
    on_backends(60s, [](Backend& backend, Party&) {
        auto lowered = lower(two_steps(), backend.rank());
        ASSERT_TRUE(lowered);
        Schedule& schedule = lowered->steps.front().schedule;
        if (backend.rank() == 2) --schedule.sends.front().box[0].end;
        const auto prepared = backend.prepare({*lowered});
        ASSERT_FALSE(prepared);
        EXPECT_EQ(prepared.error().code, Code::mismatch);
        EXPECT_TRUE(names(prepared.error(), "step 1 (exchange): rank 2 sends 960 bytes to rank 0, which expects 1024"))
            << prepared.error().message;
    });
}

TEST_F(Faults, WhatOneRankRefusesItselfIsSaidOnAllRanks) {
    Party party(ranks);
    party.on_every_rank([&](ncclComm_t communicator, Index rank) {
        const auto backend = make_backend(communicator, patient(rank == 1 ? -1s : 60s));
        ASSERT_FALSE(backend);
        EXPECT_EQ(backend.error().code, rank == 1 ? Code::usage : Code::backend) << backend.error().message;
        if (rank != 1) {
            EXPECT_EQ(backend.error().message, "another rank failed in nccl::make_backend");
        }
        party.count_true(true);
    });
    on_backends(60s, [](Backend& backend, Party&) {
        const auto window = allocate_window(backend, backend.rank() == 2 ? -1 : 64);
        ASSERT_FALSE(window);
        EXPECT_EQ(window.error().code, Code::usage);
        EXPECT_TRUE(names(window.error(), "-1 bytes are less than none")) << window.error().message;
        EXPECT_TRUE(allocate_window(backend, 64));
    });
}

TEST_F(Faults, NoMemoryForStagingIsSaidOnAllRanks) {
    auto* const set_capacity = found<void(int, std::size_t)>("gpu_double_set_capacity");
    auto* const live = found<std::size_t(int)>("gpu_double_live_bytes");
    on_backends(60s, [&](Backend& backend, Party& party) {
        party.count_true(true);
        if (backend.rank() == 1) set_capacity(1, live(1) + 2048);
        party.count_true(true);
        const auto executor = Executor::prepare(judge(two_steps(), backend.capabilities()), backend);
        party.count_true(true);
        if (backend.rank() == 1) set_capacity(1, std::size_t{1} << 36);
        ASSERT_FALSE(executor);
        EXPECT_EQ(executor.error().code, Code::backend);
        if (backend.rank() == 1) {
            EXPECT_TRUE(names(executor.error(), "step ")) << executor.error().message;
            EXPECT_TRUE(names(executor.error(), "out of memory")) << executor.error().message;
        } else {
            EXPECT_TRUE(names(executor.error(), "rank 1 could not prepare: ")) << executor.error().message;
            EXPECT_TRUE(names(executor.error(), "out of memory")) << executor.error().message;
        }
        party.count_true(true);
        EXPECT_TRUE(Executor::prepare(judge(two_steps(), backend.capabilities()), backend));  // the backend still works
    });
}

TEST_F(Faults, ARankThatNeverStartsIsNotWaitedForForever) {
    const Wanted data = wanted(two_steps(), 1);
    on_backends(300ms, [&](Backend& backend, Party& party) {
        auto executor = Executor::prepare(judge(data.plan, backend.capabilities()), backend);
        ASSERT_TRUE(executor) << executor.error().message;
        Trial trial(backend, data, executor->workspace_bytes());
        const Buffers buffers = trial.buffers();
        auto bound = executor->bind(std::span(&buffers, 1));
        ASSERT_TRUE(bound);
        party.count_true(true);
        if (backend.rank() != 3) {
            auto run = (*bound)->start();
            ASSERT_TRUE(run);
            const auto done = (*run)->wait();
            ASSERT_FALSE(done);
            EXPECT_EQ(done.error().code, Code::backend);
            EXPECT_TRUE(names(done.error(), "step 1 (exchange), with ranks")) << done.error().message;
            EXPECT_TRUE(names(done.error(), "3")) << done.error().message;
            const auto again = Executor::prepare(judge(data.plan, backend.capabilities()), backend);
            ASSERT_FALSE(again);
            EXPECT_TRUE(names(again.error(), "aborted")) << again.error().message;
        }
        party.count_true(true);
    });
}

TEST_F(Faults, ARankThatNeverPreparesIsNotWaitedForForever) {
    on_backends(300ms, [](Backend& backend, Party& party) {
        if (backend.rank() != 0) {
            const auto executor = Executor::prepare(judge(two_steps(), backend.capabilities()), backend);
            ASSERT_FALSE(executor);
            EXPECT_EQ(executor.error().code, Code::backend);
            EXPECT_TRUE(names(executor.error(), "while ranks agree")) << executor.error().message;
        }
        party.count_true(true);
    });
}

TEST_F(Faults, AnErrorBehindTheHostsBackNamesItsStep) {
    auto* const fail_after = found<void(int, int)>("nccl_double_fail");
    const Wanted data = wanted(two_steps(), 2);
    for (const int operations : {0, 1}) {
        on_backends(500ms, [&](Backend& backend, Party& party) {
            auto executor = Executor::prepare(judge(data.plan, backend.capabilities()), backend);
            ASSERT_TRUE(executor) << executor.error().message;
            Trial trial(backend, data, executor->workspace_bytes());
            const Buffers buffers = trial.buffers();
            auto bound = executor->bind(std::span(&buffers, 1));
            ASSERT_TRUE(bound);
            if (backend.rank() == 1) fail_after(1, operations);
            party.count_true(true);
            auto run = (*bound)->start();
            const auto done = run ? (*run)->wait() : tl::unexpected(run.error());
            if (backend.rank() == 1) {
                ASSERT_FALSE(done);
                EXPECT_TRUE(names(done.error(), fmt::format("step {} ", operations + 1))) << done.error().message;
                EXPECT_TRUE(names(done.error(), "unhandled system error")) << done.error().message;
            }
            const Index failures = party.count_true(!done);
            EXPECT_EQ(failures, ranks);  // the other ranks wait for rank 1 and give up
        });
    }
}

// Starts four pieces of one exchange with offers withheld, on a backend that gives up after 300 ms.
void on_withheld(const std::function<void(Backend&, Party&, Bound&, Trial&, const Wanted&)>& body) {
    const Wanted data = wanted(plan_of("x=4", "f32[64@x,64]", {{exchange, "f32[64,64@x]"}}), 3);
    on_backends(300ms, [&](Backend& backend, Party& party) {
        auto executor = Executor::prepare(judge(data.plan, Split{0, 16, {4, 8, 12, 16}, {}, true}), backend);
        ASSERT_TRUE(executor) << executor.error().message;
        Trial trial(backend, data, executor->workspace_bytes());
        const auto bound = executor->bind(trial.buffers()).value();
        party.count_true(true);
        body(backend, party, *bound, trial, data);
        party.count_true(true);
    });
}

TEST_F(Faults, AnOfferThatNeverComesIsNotWaitedForForever) {
    on_withheld([](Backend& backend, Party& party, Bound& bound, Trial&, const Wanted&) {
        auto run = bound.start({.offers_withheld = true}).value();
        const std::size_t offers = backend.rank() == 2 ? 1 : 4;
        for (std::size_t piece = 0; piece < offers; ++piece) ASSERT_TRUE(run->offer(piece));
        if (backend.rank() == 2) {
            party.count_true(true);  // the other ranks have given up
            run.reset();
            const auto again = bound.start();
            ASSERT_FALSE(again);
            EXPECT_TRUE(names(again.error(), "dropped before piece 1 was offered")) << again.error().message;
            EXPECT_TRUE(names(backend.agree(1).error(), "aborted"));
            return;
        }
        const auto begin = std::chrono::steady_clock::now();
        auto arrived = run->arrived();
        while (arrived) arrived = run->arrived();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, reshard::test::soon);
        EXPECT_TRUE(names(arrived.error(), "no end within 300 ms")) << arrived.error().message;
        EXPECT_TRUE(names(arrived.error(), "(exchange), with ranks")) << arrived.error().message;
        EXPECT_EQ(event(*run, 0).error().message, arrived.error().message);
        EXPECT_EQ(run->wait().error().message, arrived.error().message);
        party.count_true(true);
    });
}

TEST_F(Faults, AnErrorInThePiecesEndsTheRunOnAllRanks) {
    auto* const fail_after = found<void(int, int)>("nccl_double_fail");
    on_withheld([&](Backend& backend, Party& party, Bound& bound, Trial&, const Wanted&) {
        if (backend.rank() == 1) fail_after(1, 2);
        party.count_true(true);
        const auto run = bound.start({.offers_withheld = true}).value();
        Result<void> done;
        for (std::size_t piece = 0; piece < 4 && done; ++piece) done = run->offer(piece);
        if (done) done = run->wait();
        ASSERT_FALSE(done);
        if (backend.rank() == 1) {
            EXPECT_TRUE(names(done.error(), "unhandled system error")) << done.error().message;
        }
        EXPECT_FALSE(run->arrived());
    });
}

// The doubles themselves report every call that real NCCL would hang on or refuse.
TEST_F(Faults, TheDoublesSpeakUp) {
    auto* const complaints = found<int()>("gpu_double_complaints");
    auto* const set_timeout = found<void(int)>("nccl_double_set_timeout");
    set_timeout(300);
    const int before = complaints();
    Party party(2);
    party.on_every_rank([&](ncclComm_t communicator, Index rank) {
        cudaStream_t stream = nullptr;
        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        float* numbers = nullptr;
        must(cudaMalloc(&numbers, 4096), "cudaMalloc");
        float host = 0;
        EXPECT_EQ(ncclSend(&host, 1, ncclFloat, 0, communicator, stream), ncclInvalidArgument);
        const auto other = static_cast<int>(1 - rank);
        must(ncclSend(numbers, 8, ncclFloat, other, communicator, stream), "ncclSend");  // not grouped: hangs
        must(ncclRecv(numbers + 64, 8, ncclFloat, other, communicator, stream), "ncclRecv");
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        ncclResult_t state = ncclSuccess;
        must(ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError");
        EXPECT_EQ(state, ncclRemoteError);
        EXPECT_NE(std::string_view(ncclGetLastError(communicator)).find("real NCCL would hang"), std::string::npos);
        must(cudaFree(numbers), "cudaFree");
        must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    });
    EXPECT_GE(complaints() - before, 3);
    set_timeout(30000);
}

}  // namespace
}  // namespace reshard::nccl::test
