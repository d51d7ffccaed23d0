// Options::register_after: buffers that went through bounce buffers in so many runs are registered.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "conformance/harness.hpp"
#include "mapped.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"

namespace reshard::conformance {
namespace {

using test::Mapped;

constexpr Index side = 2048;  // of a square of bytes: 1 MiB a rank or more on four ranks
constexpr Index after = 3;

// Rows to columns, on a backend that registers what moves repeatedly.
class Loop {
public:
    explicit Loop(Index rows = side) : rows_(rows), backend_(made()) {
        const Mesh mesh{{"x", backend_->size()}};
        source_ = make_layout(mesh, DType::u8, {rows, side}, P{"x", {}}).value();
        target_ = make_layout(mesh, DType::u8, {rows, side}, P{{}, "x"}).value();
    }
    [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(rows_ * side / backend_->size()); }
    [[nodiscard]] Backend& backend() const { return *backend_; }
    [[nodiscard]] bool bounces() const { return backend_->size() > 1 && backend_->capabilities().one_exchange; }
    [[nodiscard]] std::size_t registered() const {
        return static_cast<std::size_t>(backend_->memory_use().registered_bytes);
    }

    // Moves once, and returns whether the target is right.
    [[nodiscard]] bool move(std::span<std::byte> in, std::span<std::byte> out) {
        ++salt_;
        const Index own_rows = rows_ / backend_->size();
        const Index width = side / backend_->size();
        for (Index i = 0; i < own_rows * side; ++i)
            in[static_cast<std::size_t>(i)] = value(backend_->rank() * own_rows + i / side, i % side);
        const auto moved = redistribute(*backend_, source_, target_, std::span<const std::byte>(in), out);
        EXPECT_TRUE(moved) << moved.error().message;
        bool right = moved.has_value();
        for (Index i = 0; i < rows_ * width; ++i)
            right = right && out[static_cast<std::size_t>(i)] == value(i / width, backend_->rank() * width + i % width);
        return right;
    }

private:
    static std::unique_ptr<Backend> made() {
        mpi::Options options;
        options.register_after = after;
        return mpi::make_backend(MPI_COMM_WORLD, options).value();
    }
    [[nodiscard]] std::byte value(Index row, Index column) const {
        return std::byte(static_cast<unsigned char>(row * 31 + column * 7 + salt_));
    }

    Index rows_;
    std::unique_ptr<Backend> backend_;
    Layout source_;
    Layout target_;
    Index salt_ = 0;
};

TEST(Repeated, TheTargetIsRegisteredAfterSoManyRuns) {
    const test::Traces before;
    {
        Loop loop;
        const Mapped in(loop.bytes());
        const Mapped out(loop.bytes());
        for (Index run = 1; run <= after + 4; ++run) {
            EXPECT_TRUE(loop.move(in.bytes(), out.bytes())) << run;
            EXPECT_EQ(loop.registered(), loop.bounces() && run > after ? loop.bytes() : 0) << run;
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(test::Traces().mappings, before.mappings);
}

// A program that allocates a target for each run: the source is registered, one run later.
TEST(Repeated, TheSourceIsRegisteredIfTargetsAreNew) {
    Loop loop;
    const Mapped in(loop.bytes());
    std::vector<std::unique_ptr<Mapped>> targets;
    for (Index run = 1; run <= after + 4; ++run) {
        targets.push_back(std::make_unique<Mapped>(loop.bytes()));
        EXPECT_TRUE(loop.move(in.bytes(), targets.back()->bytes())) << run;
        EXPECT_EQ(loop.registered(), loop.bounces() && run > after + 1 ? loop.bytes() : 0) << run;
    }
}

// Double buffering: each target is registered after its own runs. A source that both share is registered before them.
TEST(Repeated, EachBufferHasItsOwnCount) {
    for (const bool shared : {false, true}) {
        Loop loop;
        const Mapped sources[] = {Mapped(loop.bytes()), Mapped(loop.bytes())};
        const Mapped targets[] = {Mapped(loop.bytes()), Mapped(loop.bytes())};
        for (Index run = 0; run < 2 * after + 6; ++run) {
            const Mapped& in = sources[shared ? 0 : run % 2];
            EXPECT_TRUE(loop.move(in.bytes(), targets[run % 2].bytes())) << run;
        }
        EXPECT_EQ(loop.registered(), loop.bounces() ? (shared ? 1 : 2) * loop.bytes() : 0);
    }
}

// Shared memory cannot be registered. That is no error, and the source is registered in its place.
TEST(Repeated, MemoryThatIsRefusedMovesAsBefore) {
    Loop loop;
    const Mapped in(loop.bytes());
    const Mapped out(loop.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
    for (Index run = 1; run <= after + 4; ++run) EXPECT_TRUE(loop.move(in.bytes(), out.bytes())) << run;
    EXPECT_EQ(loop.registered(), loop.bounces() ? loop.bytes() : 0);
}

TEST(Repeated, SmallAndAllocatedMemoryIsNotRegistered) {
    Loop loop;
    Loop small(side / 8);
    const Mapped in(small.bytes());
    const Mapped out(small.bytes());
    const auto memory = loop.backend().allocate(static_cast<Index>(2 * loop.bytes())).value();
    const std::span all = memory->bytes();
    for (Index run = 0; run < after + 4; ++run) {
        EXPECT_TRUE(small.move(in.bytes(), out.bytes())) << run;
        EXPECT_TRUE(loop.move(all.first(loop.bytes()), all.last(loop.bytes()))) << run;
    }
    EXPECT_EQ(small.registered(), 0);
    EXPECT_EQ(loop.registered(), 0);
}

TEST(Repeated, ItIsWithheldFromChildren) {
    Loop loop;
    const Mapped in(loop.bytes());
    const Mapped out(loop.bytes());
    for (Index run = 0; run < after + 2; ++run) EXPECT_TRUE(loop.move(in.bytes(), out.bytes()));
    const pid_t child = fork();
    if (child == 0) {
        unsigned char there = 0;
        const bool absent = mincore(out.bytes().data(), test::page, &there) != 0 && errno == ENOMEM;
        _exit(absent ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), loop.bounces() ? 1 : 0);
    EXPECT_TRUE(loop.move(in.bytes(), out.bytes()));
}

TEST(Repeated, TheNumberOfMovesIsMeasured) {
    const auto moves = mpi::moves_that_repay(MPI_COMM_WORLD);
    ASSERT_TRUE(moves) << moves.error().message;
    EXPECT_GE(*moves, 1);
    Index first = *moves;
    MPI_Bcast(&first, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    EXPECT_EQ(*moves, first) << "the ranks agree";
    mpi::Options options;
    options.register_after = mpi::when_repaid;
    EXPECT_TRUE(mpi::make_backend(MPI_COMM_WORLD, options));
    options.register_after = -2;
    const auto refused = mpi::make_backend(MPI_COMM_WORLD, options);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("mpi::Options::register_after is -2"), std::string::npos);
}

}  // namespace
}  // namespace reshard::conformance
