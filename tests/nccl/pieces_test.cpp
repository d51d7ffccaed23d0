// Runs in pieces on streams. Each rank offers, computes and polls in its own order; a graph does too.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <numeric>

#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "device_pieces.hpp"
#include "doubles/find.hpp"
#include "mirrored.hpp"
#include "party.hpp"
#include "reshard/backends/local.hpp"
#include "support/property.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;
using nccl::test::must;
using Random = std::mt19937_64;

void on_every_rank(const std::function<void(Backend&)>& body) {
    harness().on_every_rank([&](Backend& backend) { body(behind_mirrors(backend)); });
}

Judged<Plan> judged(const InPieces& drawn) { return judge(drawn.item.plan, drawn.split).value(); }

// Four pieces; the third travels first.
InPieces turning() {
    const Index ranks = harness().ranks();
    const auto plan = plan_of(fmt::format("x={}", ranks), "f32[96@x,64]", exchange, "f32[96,64@x]");
    return {{*plan}, {0, 96 / ranks, {1, 2, 5, 96 / ranks}, {2, 0, 3, 1}, true}};
}

// A run of one rank: its start and its state.
class Play {
public:
    Play(Bound& bound, DevicePieces& bench, const Split& split, std::uint64_t seed)
        : bound_(bound), bench_(bench), split_(split), random_(seed) {}

    void run() {
        const bool withheld = random_() % 4 != 0;
        to_offer_.resize(split_.ends.size());
        std::iota(to_offer_.begin(), to_offer_.end(), std::size_t{0});
        offered_.assign(split_.ends.size(), !withheld);
        if (!withheld) make_all();
        const StartOptions options{.offers_withheld = withheld};
        auto started = random_() % 2 == 0 ? bound_.start(options) : nccl::start(bound_, queue_.get(), options);
        ASSERT_TRUE(started) << started.error().message;
        ticket_ = std::move(*started);
        while (!to_offer_.empty() || random_() % 4 != 0) {
            switch (random_() % 4) {
                case 0:
                    offer();
                    break;
                case 1:
                    follow();
                    break;
                default:
                    look();
            }
            if (testing::Test::HasFatalFailure()) return;
        }
        const auto done = ticket_->wait();
        ASSERT_TRUE(done) << done.error().message;
        ASSERT_EQ(ticket_->arrived().value(), split_.ends.size());
        ASSERT_EQ(bench_.wrong_in_the_end(read_), "");
        made_.synchronize();
    }

private:
    void make_all() {
        for (const std::size_t piece : to_offer_) bench_.make(piece, made_.get());
        to_offer_.clear();
        made_.synchronize();
    }
    // The number of leading pieces, in travelling order, that have started on this rank.
    [[nodiscard]] std::size_t set_out() const {
        std::size_t place = 0;
        while (place < offered_.size() && offered_[piece_at(split_, place)]) ++place;
        return place;
    }
    void offer() {
        if (to_offer_.empty()) return;
        std::swap(to_offer_[random_() % to_offer_.size()], to_offer_.back());
        const std::size_t piece = to_offer_.back();
        to_offer_.pop_back();
        offered_[piece] = true;
        bench_.make(piece, made_.get());
        const bool by_host = random_() % 4 == 0;
        if (by_host) made_.synchronize();
        const auto done = by_host ? ticket_->offer(piece) : nccl::offer(*ticket_, piece, made_.get());
        ASSERT_TRUE(done) << done.error().message;
    }
    void look() {
        const auto arrived = ticket_->arrived();
        ASSERT_TRUE(arrived) << arrived.error().message;
        ASSERT_GE(*arrived, last_);
        ASSERT_LE(*arrived, set_out());
        last_ = *arrived;
        ASSERT_EQ(bench_.wrong(last_, set_out(), read_), "");
    }
    // A stream that waits for the event of a piece sees this piece and all before it. It waits for the offers of all
    // ranks, so the host must offer everything before it waits for the stream.
    void follow() {
        const std::size_t place = random_() % split_.ends.size();
        const auto event = nccl::event(*ticket_, piece_at(split_, place));
        ASSERT_EQ(event.has_value(), place < set_out()) << place;
        if (!event || !to_offer_.empty()) return;
        must(cudaStreamWaitEvent(read_.get(), *event, 0), "cudaStreamWaitEvent");
        ASSERT_EQ(bench_.wrong(place + 1, set_out(), read_), "");
    }

    Bound& bound_;
    DevicePieces& bench_;
    const Split& split_;
    Random random_;
    OwnStream queue_;
    OwnStream made_;
    OwnStream read_;
    std::vector<std::size_t> to_offer_;
    std::vector<bool> offered_;
    std::size_t last_ = 0;
    std::unique_ptr<Ticket> ticket_;
};

void expect_pieces(Backend& backend, const InPieces& drawn, std::uint64_t seed) {
    auto executor = Executor::prepare(judged(drawn), backend, storages_of(drawn.item, backend.rank()));
    ASSERT_TRUE(executor) << executor.error().message;
    DevicePieces bench(backend, drawn, seed, executor->workspace_bytes());
    auto bound = executor->bind(bench.buffers());
    ASSERT_TRUE(bound) << bound.error().message;
    for (std::uint64_t run = 0; run < 2; ++run) {
        bench.refill();
        Play(**bound, bench, drawn.split, (2 * seed + run) * 64 + static_cast<std::uint64_t>(backend.rank())).run();
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(PiecesOnStreams, ArriveWholeInAnyProgress) {
    const int few = nccl::test::on_doubles() ? 400 : 60;  // a device takes longer to prepare
    const auto cases = static_cast<std::uint64_t>(test::cases(few)) * (test::long_run() ? 5 : 1);
    const std::uint64_t first = std::stoull(harness().from_rank_0([] { return std::to_string(test::drawn_seed()); }));
    std::cout << fmt::format("RESHARD_SEED={}\n", first);
    on_every_rank([&](Backend& backend) {
        for (std::uint64_t seed = first; seed < first + cases; ++seed) {
            const std::string text = drawn_in_pieces(seed, harness().ranks());
            SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", seed, text));
            const auto drawn = in_pieces_of(text, seed);
            ASSERT_TRUE(drawn);
            expect_pieces(backend, *drawn, seed);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

TEST(PiecesOnStreams, WrongUseIsSaidAndTheRunGoesOn) {
    on_every_rank([](Backend& backend) {
        const InPieces drawn = turning();
        auto executor = Executor::prepare(judged(drawn), backend).value();
        EXPECT_NE(executor.describe().find("in 4 pieces, one at a time"), std::string::npos) << executor.describe();
        DevicePieces bench(backend, drawn, 3, executor.workspace_bytes());
        const auto bound = executor.bind(bench.buffers()).value();
        const OwnStream stream;
        for (std::size_t piece = 0; piece < 4; ++piece) bench.make(piece, stream.get());
        const auto run = nccl::start(*bound, stream.get(), {.offers_withheld = true}).value();
        EXPECT_EQ(nccl::event(*run, 4).error().message, "event: there is no piece 4, the run has 4");
        EXPECT_EQ(nccl::event(*run, 2).error().message, "event: piece 2 has not set out, which waits for offers");
        EXPECT_EQ(nccl::offer(*run, 4, stream.get()).error().message, "offer: there is no piece 4, the run has 4");
        ASSERT_TRUE(nccl::offer(*run, 2, stream.get()));
        EXPECT_TRUE(nccl::event(*run, 2));
        EXPECT_EQ(nccl::offer(*run, 2, stream.get()).error().message, "offer: piece 2 has been offered before");
        ASSERT_TRUE(nccl::offer(*run, 3, stream.get()));
        EXPECT_EQ(nccl::event(*run, 3).error().code, Code::usage);  // piece 0 travels before it
        EXPECT_EQ(run->wait().error().message, "wait: piece 0 has not been offered");
        ASSERT_TRUE(nccl::offer(*run, 0, stream.get()));
        ASSERT_TRUE(run->offer(1));
        EXPECT_TRUE(run->wait());
        EXPECT_TRUE(nccl::event(*run, 1));
        EXPECT_EQ(bench.wrong_in_the_end(stream), "");
        const auto plain = bound->start().value();
        EXPECT_EQ(nccl::offer(*plain, 0, stream.get()).error().message, "offer: the run has no offers withheld");
        EXPECT_TRUE(plain->wait());
    });
}

TEST(PiecesOnStreams, OtherBackendsHaveNoStreams) {
    local::World world(1);
    const Plan plan = *plan_of("x=1", "f32[8@x]", all_gather, "f32[8]");
    auto executor = Executor::prepare(judge(plan, Split{0, 8, {4, 8}, {}, true}), world.rank(0)).value();
    std::vector<std::byte> source(32);
    std::vector<std::byte> target(32);
    const auto bound = executor.bind({source, target, {}}).value();
    const OwnStream stream;
    EXPECT_EQ(nccl::start(*bound, stream.get(), {.offers_withheld = true}).error().code, Code::unsupported);
    const auto plain = nccl::start(*bound, stream.get(), {});
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error().code, Code::unsupported);
    const auto run = bound->start({.offers_withheld = true}).value();
    EXPECT_EQ(nccl::event(*run, 0).error().code, Code::unsupported);
    EXPECT_EQ(nccl::offer(*run, 0, stream.get()).error().code, Code::unsupported);
    ASSERT_TRUE(run->offer(0));
    ASSERT_TRUE(run->offer(1));
    EXPECT_TRUE(run->wait());
}

// Device memory of a test, in the order of no stream.
class Shelf {
public:
    Shelf(Backend& backend, std::size_t bytes) : memory_(backend.allocate(static_cast<Index>(bytes)).value()) {}
    [[nodiscard]] std::span<std::byte> bytes() const { return memory_->bytes(); }

private:
    std::unique_ptr<Memory> memory_;
};

void copy_on_device(std::span<const std::byte> from, std::span<std::byte> to, cudaStream_t stream) {
    must(cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
}

// Captures the computing stream. It makes a piece and offers it, and copies the target to a shelf after each piece's
// event.
TEST(PiecesOnStreams, AreTakenIntoAGraph) {
    on_every_rank([](Backend& backend) {
        const InPieces drawn = turning();
        const std::size_t pieces = drawn.split.ends.size();
        auto executor = Executor::prepare(judged(drawn), backend).value();
        PieceBench bench(drawn, backend.rank(), 3, executor.workspace_bytes());
        DevicePieces device(backend, drawn, 3, executor.workspace_bytes());
        const Buffers buffers = device.buffers();
        const auto bound = executor.bind(buffers).value();
        std::vector<Shelf> sources;
        std::vector<Shelf> seen;
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            bench.make(piece);
            sources.emplace_back(backend, buffers.source.size());
            ASSERT_TRUE(backend.put(bench.bench().source.bytes, sources.back().bytes()));
            seen.emplace_back(backend, buffers.target.size());
        }
        const OwnStream compute;
        const OwnStream wire;
        must(cudaStreamBeginCapture(compute.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
        const auto run = nccl::start(*bound, wire.get(), {.offers_withheld = true}).value();
        const std::span source(const_cast<std::byte*>(buffers.source.data()), buffers.source.size());
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            copy_on_device(sources[piece].bytes(), source, compute.get());
            const auto offered = nccl::offer(*run, piece, compute.get());
            EXPECT_TRUE(offered) << offered.error().message;
        }
        EXPECT_EQ(run->arrived().value(), pieces);  // captured, not run
        for (std::size_t place = 0; place < pieces; ++place) {
            const auto event = nccl::event(*run, piece_at(drawn.split, place));
            ASSERT_TRUE(event) << event.error().message;
            must(cudaStreamWaitEvent(compute.get(), *event, 0), "cudaStreamWaitEvent");
            copy_on_device(buffers.target, seen[place].bytes(), compute.get());
        }
        cudaGraph_t graph = nullptr;
        must(cudaStreamEndCapture(compute.get(), &graph), "cudaStreamEndCapture");
        cudaGraphExec_t ready = nullptr;
        must(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
        for (int launch = 0; launch < 2; ++launch) {
            device.refill();
            must(cudaGraphLaunch(ready, compute.get()), "cudaGraphLaunch");
            compute.synchronize();
            EXPECT_EQ(device.wrong(pieces, pieces, compute), "");
            for (std::size_t place = 0; place < pieces; ++place) {
                ASSERT_TRUE(backend.get(seen[place].bytes(), bench.bench().target.bytes));
                EXPECT_EQ(bench.wrong(place + 1, pieces), "");
            }
        }
        must(cudaGraphExecDestroy(ready), "cudaGraphExecDestroy");
        must(cudaGraphDestroy(graph), "cudaGraphDestroy");
        expect_pieces(backend, drawn, 5);  // and without a graph again
    });
}

}  // namespace
}  // namespace reshard::conformance
