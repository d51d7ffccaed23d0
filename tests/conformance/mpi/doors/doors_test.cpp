// Doors and executors in random order, while a random rank makes mistakes: every mistake is an error on all ranks, it
// writes no byte of a target, and the next call succeeds.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "reshard/backends/mpi.hpp"
#include "reshard/redistribute.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"
#include "support/world.hpp"

namespace reshard {
namespace {

constexpr double untouched = -1;

struct Pair {
    Layout source;
    Layout target;
};

// Moves between all ranks, between some, of one rank's tile to itself, and sums.
std::vector<Pair> pairs() {
    const Mesh mesh{{"ranks", world_size_of()}};
    const auto layout = [&](std::vector<Index> shape, const P& spec) {
        return *make_layout(mesh, DType::f64, std::move(shape), spec);
    };
    std::vector<Pair> all;
    for (const Index rows : {8, 13, 120}) {
        all.push_back({layout({rows, 12}, P{"ranks", {}}), layout({rows, 12}, P{{}, "ranks"})});
        all.push_back({layout({rows, 12}, P{{}, "ranks"}), layout({rows, 12}, P{"ranks", {}})});
    }
    all.push_back({layout({1, 40}, P{"ranks", {}}), layout({1, 40}, P{{}, "ranks"})});  // one rank holds all
    all.push_back({layout({8, 5}, P{"ranks", {}}), layout({8, 5}, P{"ranks", {}})});
    const std::string mesh_text = fmt::format("ranks={}", world_size_of());
    const Mesh parsed = *parse_mesh(mesh_text);
    all.push_back({*parse_layout(parsed, "f64[6,8]{U:ranks}"), *parse_layout(parsed, "f64[6,8]")});
    return all;
}

double value_at(Index row, Index column) { return static_cast<double>(100 * row + column + 1); }

// The elements of this rank's tile. If ranks add, each holds its share of the sum.
std::vector<double> values(const Layout& layout, int ranks_that_add) {
    std::vector<double> all;
    const Tile own = tile(layout, world_rank());
    for (Index i = 0; i < own[0].size(); ++i)
        for (Index j = 0; j < own[1].size(); ++j)
            all.push_back(value_at(own[0].at(i), own[1].at(j)) * static_cast<double>(ranks_that_add));
    return all;
}

bool adds(const Pair& pair) { return !pair.source.unreduced.empty(); }

enum class Mistake { none, other_known, other_new, too_many, another_type, refuses };
constexpr int mistakes = 6;

// One call of a door on all ranks.
class Trial {
public:
    Trial(Backend& backend, std::uint64_t seed) : backend_(backend), random_(seed), all_(pairs()) {
        const auto bytes = static_cast<Index>(sizeof(double)) * 4096;
        for (auto* memory : {&in_memory_, &out_memory_}) *memory = backend.allocate(bytes).value();
        for (const Pair& pair : all_) {
            const auto made = synthesize(pair.source, pair.target, {.capabilities = backend.capabilities()}).value();
            executors_.push_back(Executor::prepare(made, backend).value());
        }
    }

    void step(int number) {
        const std::size_t chosen = draw(all_.size());
        const auto mistake = draw(12) == 0 ? static_cast<Mistake>(draw(mistakes)) : Mistake::none;
        const int faulty = static_cast<int>(draw(static_cast<std::size_t>(world_size_of())));
        const std::size_t other = (chosen + 1 + draw(all_.size() - 1)) % all_.size();
        const bool allocated = draw(2) == 0;
        const std::size_t kind = draw(8);
        const std::string where =
            fmt::format("call {}: pair {}, mistake {} of rank {}", number, chosen, static_cast<int>(mistake), faulty);
        if (kind == 0) return run(executors_[chosen], all_[chosen], where);
        if (kind == 1 && draw(16) == 0) return clear(backend_);
        Pair asked = all_[chosen];
        const bool wrong = world_rank() == faulty && mistake != Mistake::none;
        if (wrong && mistake == Mistake::other_known) asked = all_[other];
        if (wrong && mistake == Mistake::other_new) asked = never_before();
        const auto outcome = door(asked, wrong ? mistake : Mistake::none, allocated);
        if (mistake == Mistake::none) {
            ASSERT_TRUE(outcome) << where << ": " << outcome.error().message;
            expect_moved(asked, where);
            return;
        }
        if (world_size_of() == 1 && (mistake == Mistake::other_known || mistake == Mistake::other_new)) return;
        ASSERT_FALSE(outcome) << where;
        ASSERT_TRUE(std::ranges::all_of(out_, [](double one) { return one == untouched; })) << where;
        const std::string& said = outcome.error().message;
        if (mistake == Mistake::other_known || mistake == Mistake::other_new) {
            ASSERT_NE(said.find("brings another plan"), std::string::npos) << where << ": " << said;
        } else {
            const bool quoted = said.starts_with(fmt::format("rank {} could not prepare: ", faulty));
            ASSERT_EQ(quoted, world_rank() != faulty) << where << ": " << said;
        }
    }

private:
    std::size_t draw(std::size_t below) { return random_() % below; }  // the same on all ranks

    Pair never_before() {
        const Mesh mesh{{"ranks", world_size_of()}};
        const std::vector<Index> shape = {8, 12 + ++extents_};
        return {*make_layout(mesh, DType::f64, shape, P{"ranks", {}}),
                *make_layout(mesh, DType::f64, shape, P{{}, "ranks"})};
    }

    static std::span<double> part(Memory& memory, std::size_t count) {
        return std::span(reinterpret_cast<double*>(memory.bytes().data()), count);
    }

    void place(const Pair& pair, bool allocated) {
        const std::vector<double> in = values(pair.source, 1);
        own_in_ = in;
        own_out_.assign(tile_count(pair.target, world_rank()), untouched);
        in_ = own_in_;
        out_ = own_out_;
        if (!allocated || std::max(in_.size(), out_.size()) > 4096) return;
        in_ = part(*in_memory_, in.size());
        out_ = part(*out_memory_, own_out_.size());
        std::ranges::copy(in, in_.begin());
        std::ranges::fill(out_, untouched);
    }

    Result<void> door(const Pair& asked, Mistake mistake, bool allocated) {
        place(asked, allocated);
        if (mistake == Mistake::refuses) {
            const Error why{Code::usage, "this rank refuses"};
            refuse(backend_, why);
            return tl::unexpected(why);
        }
        std::vector<double> more(in_.begin(), in_.end());
        more.push_back(0);
        if (mistake == Mistake::too_many) return redistribute(backend_, asked.source, asked.target, more, out_);
        const std::vector<std::int64_t> integers(in_.size());
        if (mistake == Mistake::another_type && !integers.empty())
            return redistribute(backend_, asked.source, asked.target, integers, out_);
        if (mistake == Mistake::another_type) return redistribute(backend_, asked.source, asked.target, more, out_);
        return redistribute(backend_, asked.source, asked.target, in_, out_);
    }

    void run(Executor& executor, const Pair& pair, const std::string& where) {
        place(pair, false);
        const auto done = executor.run(std::span<const double>(in_), out_);
        ASSERT_TRUE(done) << where << ": " << done.error().message;
        expect_moved(pair, where);
    }

    void expect_moved(const Pair& pair, const std::string& where) const {
        const auto wanted = values(pair.target, adds(pair) ? world_size_of() : 1);
        ASSERT_TRUE(std::ranges::equal(wanted, out_)) << where;
    }

    Backend& backend_;
    std::mt19937_64 random_;
    std::vector<Pair> all_;
    std::vector<Executor> executors_;
    std::unique_ptr<Memory> in_memory_;
    std::unique_ptr<Memory> out_memory_;
    std::vector<double> own_in_;
    std::vector<double> own_out_;
    std::span<double> in_;
    std::span<double> out_;
    Index extents_ = 0;
};

int calls() { return test::long_run() ? 1'000'000 : 800; }

// The seed is the same on all ranks.
std::uint64_t common_seed() {
    std::uint64_t seed = test::drawn_seed();
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return seed;
}

void play(const mpi::Options& options, int count) {
    const auto backend = mpi::make_backend(MPI_COMM_WORLD, options).value();
    const std::uint64_t seed = common_seed();
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Trial trial(*backend, seed);
    for (int number = 0; number < count; ++number) {
        ASSERT_NO_FATAL_FAILURE(trial.step(number));
    }
}

TEST(Doors, AMistakeIsAnErrorOnAllRanksInANode) { play({}, calls()); }

TEST(Doors, AMistakeIsAnErrorOnAllRanksBetweenNodes) {
    mpi::Options options;
    options.ranks_per_node = 2;
    play(options, calls() / 5);
}

TEST(Doors, AMistakeIsAnErrorOnAllRanksByMessages) {
    mpi::Options options;
    options.shared_memory = false;
    play(options, calls() / 10);
}

}  // namespace
}  // namespace reshard
