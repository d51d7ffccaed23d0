// One message of more than 2^31 elements, from a rank that has everything to a rank that has nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>

#include "reshard/backends/mpi.hpp"
#include "reshard/execute.hpp"
#include "reshard/text.hpp"

namespace reshard {
namespace {

std::byte value_at(Index element) {
    return static_cast<std::byte>((static_cast<std::uint64_t>(element) * 0x9e3779b97f4a7c15u) >> 56);
}

Plan replicating_plan(Index rows, Index columns) {
    const Mesh mesh = *parse_mesh("x=2");
    // Two devices share one index: the first device holds it, the second holds nothing.
    const Layout source = *parse_layout(mesh, fmt::format("u8[1@x,{},{}]", rows, columns));
    const Layout target = *parse_layout(mesh, fmt::format("u8[1,{},{}]", rows, columns));
    return {source, target, {{StepKind::exchange, target}}};
}

void expect_large_move(Index rows, Index columns, Index padding) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD);
    ASSERT_TRUE(backend);
    const Plan plan = replicating_plan(rows, columns);
    const Index stride = columns + padding;
    auto executor = Executor::prepare(judge(plan, (*backend)->capabilities()), **backend,
                                      {std::nullopt, Storage{0, {rows * stride, stride, 1}}});
    ASSERT_TRUE(executor) << executor.error().message;
    auto source = (*backend)->allocate(executor->plans()[0].source_bytes);
    auto target = (*backend)->allocate(executor->plans()[0].target_bytes);
    ASSERT_TRUE(source && target);
    const std::span<std::byte> from = (*source)->bytes();
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = value_at(static_cast<Index>(i));
    const auto done = executor->run(from, (*target)->bytes());
    ASSERT_TRUE(done) << done.error().message;
    Index wrong = 0;
    const std::byte* to = (*target)->bytes().data();
    for (Index row = 0; row < rows; ++row) {
        for (Index column = 0; column < columns; ++column) {
            if (to[row * stride + column] != value_at(row * columns + column)) ++wrong;
        }
    }
    EXPECT_EQ(wrong, 0);
}

constexpr Index elements = (Index{1} << 31) + (Index{1} << 26) + 64;  // 2.06 GiB, not a round number

TEST(Large, OneRun) { expect_large_move(1, elements, 0); }

// Rows of one cache line with a gap behind each.
TEST(Large, ManyRuns) { expect_large_move(elements / 64, 64, 8); }

}  // namespace
}  // namespace reshard
