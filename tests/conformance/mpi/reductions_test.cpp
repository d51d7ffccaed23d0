// Sums between the ranks of a node have the same bits as sums with messages, in the memory of any rank.
#include "backends/mpi/shm/shm_reduce_plan.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "conformance/harness.hpp"
#include "conformance/move.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::conformance {
namespace {

using enum StepKind;

using Bytes = std::vector<std::byte>;

std::unique_ptr<Backend> backend_with(bool shared_memory, Index ranks_per_node = 0, Index bounce_bytes = 4096) {
    mpi::Options options;
    options.shared_memory = shared_memory;
    options.ranks_per_node = ranks_per_node;
    options.bounce_bytes = bounce_bytes;
    options.timeout = std::chrono::seconds(60);
    auto backend = mpi::make_backend(MPI_COMM_WORLD, options);
    EXPECT_TRUE(backend) << backend.error().message;
    return backend ? std::move(*backend) : nullptr;
}

// Numbers with last bits that depend on the order of addition, and no NaN: with the given bits of mantissa, and
// exponents from `lowest` on.
template <class Word>
void fill_floats(std::span<std::byte> bytes, std::mt19937_64& draw, int mantissa_bits, std::uint64_t lowest,
                 std::uint64_t exponents) {
    const std::uint64_t sign = std::uint64_t{1} << (8 * sizeof(Word) - 1);
    for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
        const std::uint64_t mantissa = draw() & ((std::uint64_t{1} << mantissa_bits) - 1);
        const auto word =
            static_cast<Word>((draw() & sign) | mantissa | ((lowest + draw() % exponents) << mantissa_bits));
        std::memcpy(bytes.data() + at, &word, sizeof word);
    }
}

void fill_numbers(DType dtype, std::span<std::byte> bytes, std::uint64_t seed) {
    std::mt19937_64 draw(seed);
    switch (dtype) {
        case DType::f16:
            return fill_floats<std::uint16_t>(bytes, draw, 10, 10, 8);
        case DType::bf16:
            return fill_floats<std::uint16_t>(bytes, draw, 7, 0x78, 12);
        case DType::f32:
        case DType::c64:
            return fill_floats<std::uint32_t>(bytes, draw, 23, 0x74, 20);
        case DType::f64:
        case DType::c128:
            return fill_floats<std::uint64_t>(bytes, draw, 52, 0x3f4, 20);
        default:
            for (std::byte& byte : bytes) byte = static_cast<std::byte>(draw() & (dtype == DType::boolean ? 1U : 255U));
    }
}

enum class Whose { backends, callers, mixed };
constexpr std::array all_owners = {Whose::backends, Whose::callers, Whose::mixed};

// Memory of the backend or of the caller, chosen by each rank.
class Tile {
public:
    Tile(Backend& backend, Index bytes, bool own) : callers_(own ? 0 : static_cast<std::size_t>(bytes)) {
        if (own) backends_ = backend.allocate(bytes).value();
    }
    [[nodiscard]] std::span<std::byte> bytes() { return backends_ ? backends_->bytes() : std::span(callers_); }

private:
    Bytes callers_;
    std::unique_ptr<Memory> backends_;
};

// An array of a list: its tiles, and the result in the target.
struct Tiles {
    Tile source;
    Tile target;
    Tile workspace;
    Tiles(Backend& backend, const RankPlan& plan, Whose whose)
        : source(backend, plan.source_bytes, is_own(whose, backend.rank())),
          target(backend, plan.target_bytes, is_own(whose, backend.rank() / 2)),
          workspace(backend, plan.workspace_bytes, whose == Whose::backends) {}
    [[nodiscard]] Buffers buffers() { return {source.bytes(), target.bytes(), workspace.bytes()}; }
    [[nodiscard]] Bytes result() { return {target.bytes().begin(), target.bytes().end()}; }

private:
    static bool is_own(Whose whose, Index number) {
        return whose == Whose::backends || (whose == Whose::mixed && number % 2 == 1);
    }
};

void start_over(Tiles& tiles, DType dtype, Index rank, std::uint64_t seed) {
    fill_numbers(dtype, tiles.source.bytes(), 1000 * seed + static_cast<std::uint64_t>(rank));
    std::ranges::fill(tiles.target.bytes(), std::byte{0x5a});
}

// Prepares once, binds in every manner in turn, and runs each twice.
std::vector<Bytes> results_of(Backend& backend, const Plan& plan, std::span<const Whose> owners) {
    std::vector<Bytes> results;
    auto executor = Executor::prepare(judge(plan, backend.capabilities()), backend);
    EXPECT_TRUE(executor) << executor.error().message;
    if (!executor) return results;
    for (const Whose whose : owners) {
        Tiles tiles(backend, executor->plans().front(), whose);
        const Buffers buffers = tiles.buffers();
        auto bound = executor->bind(std::span(&buffers, 1));
        EXPECT_TRUE(bound);
        for (const std::uint64_t seed : {1, 2}) {
            start_over(tiles, plan.source.dtype, backend.rank(), seed);
            auto ticket = (*bound)->start();
            EXPECT_TRUE(ticket && (*ticket)->wait()) << format(plan);
            results.push_back(tiles.result());
        }
    }
    return results;
}

Plan plan_through(const std::string& mesh_text, const std::vector<std::pair<StepKind, std::string>>& stops,
                  const std::string& source) {
    const Mesh mesh = parse_mesh(mesh_text).value();
    Plan plan{parse_layout(mesh, source).value(), {}, {}};
    for (const auto& [kind, layout] : stops) plan.steps.push_back({kind, parse_layout(mesh, layout).value()});
    plan.target = plan.steps.back().layout;
    return plan;
}

// Compares scattered sums with the same sums by messages. Reduced sums are compared with sums scattered by messages and
// then gathered, because MPI's own reduction adds in another order.
void expect_same_bits(Backend& shared, Backend& messages, const std::string& mesh, const std::string& type,
                      const std::string& kind) {
    const std::string source = fmt::format("{}{{{}:x}}", type, kind);
    const std::string scattered = fmt::format("{}@x{}", type.substr(0, type.find(',')), type.substr(type.find(',')));
    const Plan scatter = plan_through(mesh, {{reduce_scatter, scattered}}, source);
    const Plan reduce = plan_through(mesh, {{all_reduce, type}}, source);
    const Plan gathered = plan_through(mesh, {{reduce_scatter, scattered}, {exchange, type}}, source);
    for (const auto& [tried, wanted] : {std::pair{&scatter, &scatter}, std::pair{&reduce, &gathered}}) {
        const std::vector<Bytes> right = results_of(messages, *wanted, std::array{Whose::callers});
        const std::vector<Bytes> got = results_of(shared, *tried, all_owners);
        ASSERT_EQ(right.size(), 2U);
        ASSERT_EQ(got.size(), 2 * all_owners.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            EXPECT_TRUE(got[i] == right[i % 2]) << "run " << i << " on rank " << shared.rank() << ":\n"
                                                << format(*tried);
        }
    }
}

void expect_same_bits_of(DType dtype, Backend& shared, Backend& messages, const std::string& mesh) {
    for (const Reduction reduction : all_reductions) {
        if (!can_reduce(dtype, reduction)) continue;
        const std::string kind(reduction == Reduction::sum ? "U" : name(reduction));
        for (const char* shape : {"[9,5]", "[61,37]"})
            expect_same_bits(shared, messages, mesh, fmt::format("{}{}", name(dtype), shape), kind);
    }
}

#ifdef __SANITIZE_ADDRESS__
constexpr int types_apart = 4;  // more types add kernels, which the sanitizers check elsewhere
#else
constexpr int types_apart = 1;
#endif

TEST(Sums, HaveTheBitsOfMessages) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "nothing is added up";
    auto messages = backend_with(false);
    for (const Index per_node : {0, 2}) {
        if (per_node > 0 && ranks % per_node != 0) continue;
        auto shared = backend_with(true, per_node);
        ASSERT_TRUE(messages && shared);
        const std::string mesh =
            per_node == 0 ? fmt::format("x={}", ranks) : fmt::format("y={},x={}", ranks / per_node, per_node);
        for (int type = 0; type < std::ssize(tables::dtypes); type += types_apart)
            expect_same_bits_of(static_cast<DType>(type), *shared, *messages, mesh);
    }
}

// Bounce buffers of one size for many rounds, and shares of long, short and transposed boxes.
TEST(Sums, HaveTheBitsOfMessagesInEveryShape) {
    const Index ranks = harness().ranks();
    if (ranks == 1) GTEST_SKIP() << "nothing is added up";
    auto messages = backend_with(false);
    for (const Index bytes : {4096, 1 << 20}) {
        auto shared = backend_with(true, 0, bytes);
        ASSERT_TRUE(messages && shared);
        for (const char* type : {"f32[300,129]", "f64[3,5000]", "bf16[40000,1]", "f32[2,3]", "f32[2,1,30000]"})
            expect_same_bits(*shared, *messages, fmt::format("x={}", ranks), type, "U");
    }
}

// Sums over different axes and moves, all in one list, and alone with a workspace.
TEST(Sums, InListsBesideOthers) {
    const Index ranks = harness().ranks();
    if (ranks < 4 || ranks % 2 != 0) GTEST_SKIP() << "the mesh has two axes";
    const std::string mesh = fmt::format("y={},x=2", ranks / 2);
    std::vector<Item> items;
    const auto add = [&](const char* source, StepKind kind, const char* target, Style style = Style::row_major) {
        const auto plan = plan_of(mesh, source, kind, target);
        ASSERT_TRUE(plan);
        items.push_back({*plan, style, style});
    };
    add("f32[300,7]{U:x}", reduce_scatter, "f32[300@x,7]");
    add("f32[40@x,7]", exchange, "f32[40,7@x]");
    add("bf16[31,5]{U:y}", all_reduce, "bf16[31,5]", Style::padded);
    add("i64[2000]{max:x}", all_reduce, "i64[2000]");
    add("f16[9,50]{avg:(y,x)}", all_reduce, "f16[9,50]", Style::column_major);
    add("f32[77,7]{U:(y,x)}", reduce_scatter, "f32[77@y,7]{U:x}", Style::spaced);
    add("u8[12,7]", zero_fill, "u8[12,7]{U:x}");
    items.push_back({plan_through(mesh,
                                  {{reduce_scatter, "f32[30@x,40]"},
                                   {exchange, "f32[30,40@x]"},
                                   {zero_fill, "f32[30,40@x]{U:y}"},
                                   {all_reduce, "f32[30,40@x]"}},
                                  "f32[30,40]{U:x}")});
    for (const bool polled : {false, true}) {
        for (int turn = 0; turn < 3; ++turn) expect_moves_everywhere(items, {4, polled});  // with other memory
    }
}

TEST(Sums, SayHowTheyMove) {
    const Index ranks = harness().ranks();
    if (ranks < 2) GTEST_SKIP() << "nothing is added up";
    const Plan plan = *plan_of(fmt::format("x={}", ranks), "f32[1000,64]{U:x}", all_reduce, "f32[1000,64]");
    auto shared = backend_with(true);
    auto messages = backend_with(false);
    ASSERT_TRUE(shared && messages);
    const std::string how = Executor::prepare(judge(plan, shared->capabilities()), *shared).value().describe();
    EXPECT_NE(how.find("sums in one pass through shared memory"), std::string::npos) << how;
    EXPECT_EQ(how.find("messages"), std::string::npos) << how;
    EXPECT_EQ(Executor::prepare(judge(plan, messages->capabilities()), *messages).value().describe(), "messages");
}

// These limits are for ranks that share cores. Each rank may take the bytes of a barrier, divided by the ranks. All
// messages of an all_reduce together are at most four barriers, which matters from six ranks on.
TEST(Sums, GoByMailUpToALimit) {
    constexpr Index barrier = 128 << 10;
    const auto pays = [](Index taken, Index for_all, Index ranks) {
        return mpi::ShmReducePlan::pays_by_mail(taken, for_all, ranks, barrier);
    };
    for (const Index ranks : {2, 4, 8}) {
        EXPECT_TRUE(pays(barrier / ranks, 0, ranks));
        EXPECT_FALSE(pays(barrier / ranks + 1, 0, ranks));
    }
    EXPECT_TRUE(pays(barrier / 4, barrier / 4, 4));
    EXPECT_TRUE(pays(9362, 9362, 8));  // 56 messages
    EXPECT_FALSE(pays(9363, 9363, 8));
    EXPECT_TRUE(pays(barrier / 8, 9362, 8));
    EXPECT_FALSE(pays(barrier / 8, 9363, 8));
}

// The greatest all_reduce that goes through mailboxes here, and one that has some more bytes.
TEST(Sums, TheGreatestThatGoesByMail) {
    const Index ranks = harness().ranks();
    if (ranks < 2) GTEST_SKIP() << "nothing is added up";
    const Index barrier = Index{mpi::Signals::share_cores(MPI_COMM_WORLD).value() ? 128 : 16} << 10;
    const Index bytes = std::min(barrier / ranks, 4 * barrier / (ranks * (ranks - 1))) / 16 * 16;
    auto backend = backend_with(true, 0, 1 << 20);
    ASSERT_TRUE(backend);
    for (const Index more : {0, 16}) {
        const Plan plan = *plan_of(fmt::format("x={}", ranks), fmt::format("f64[{}]{{U:x}}", (bytes + more) / 8),
                                   all_reduce, fmt::format("f64[{}]", (bytes + more) / 8));
        const std::string how = Executor::prepare(judge(plan, backend->capabilities()), *backend).value().describe();
        EXPECT_EQ(how.find("sums at once through mailboxes") != std::string::npos, more == 0) << how;
    }
}

// A sum uses messages only if some of its ranks are on another node.
TEST(Sums, OnlyInsideNodes) {
    const Index ranks = harness().ranks();
    if (ranks != 4) GTEST_SKIP() << "the mesh is of four ranks";
    auto nodes = backend_with(true, 2);
    ASSERT_TRUE(nodes);
    const auto how = [&](const char* source, const char* target) {
        return Executor::prepare(judge(*plan_of("y=2,x=2", source, all_reduce, target), nodes->capabilities()), *nodes)
            .value()
            .describe();
    };
    EXPECT_NE(how("f32[999]{U:x}", "f32[999]").find("sums"), std::string::npos);
    EXPECT_EQ(how("f32[999]{U:y}", "f32[999]"), "messages");
    EXPECT_EQ(how("f32[999]{U:(y,x)}", "f32[999]"), "messages");
}

}  // namespace
}  // namespace reshard::conformance
