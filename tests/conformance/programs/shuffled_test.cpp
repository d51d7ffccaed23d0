// One thread runs all ranks of a local world. Dice draw the rank that goes on next.
#include <atomic>
#include <chrono>
#include <thread>

#include "drawn.hpp"
#include "player.hpp"
#include "reshard/backends/local.hpp"
#include "synth/program/dice.hpp"

namespace reshard::conformance {
namespace {

constexpr Index ranks = 8;

// All ranks, each started and then advanced in the order of the dice.
void run_shuffled(std::vector<std::unique_ptr<Player>>& players, program::Dice& dice) {
    std::vector<std::unique_ptr<Ticket>> runs;
    for (auto& player : players) {
        auto run = player->start();
        ASSERT_TRUE(run) << run.error().message;
        runs.push_back(std::move(*run));
    }
    std::vector<std::size_t> open(runs.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    for (int looks = 0; !open.empty(); ++looks) {
        ASSERT_LT(looks, 100'000) << "the run hangs";
        const auto at = static_cast<std::size_t>(dice.below(static_cast<int>(open.size())));
        const auto done = runs[open[at]]->test();
        ASSERT_TRUE(done) << done.error().message;
        if (*done) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    }
    for (auto& player : players) player->expect_right();
}

TEST(ShuffledPrograms, RandomOnesMoveEveryByteWithinTheirLimits) {
    int refused = 0, full = 0;
    Index in_pieces = 0;
    for (int k = 0; k < test::cases(100); ++k) {
        const std::uint64_t seed = test::drawn_seed() * 8192 + static_cast<std::uint64_t>(k);
        const ScheduleSynthesis made = drawn_schedule(seed, ranks, k % 4 == 0);
        in_pieces += pieced(made);
        local::World world(ranks);
        std::vector<std::unique_ptr<Player>> players;
        for (Index rank = 0; rank < ranks; ++rank) players.push_back(std::make_unique<Player>(made, world.rank(rank)));
        program::Dice dice(seed);
        if (!players.front()->prepared()) {
            EXPECT_EQ(players.front()->error().code, Code::unsupported) << players.front()->error().message;
            ++refused;
            continue;
        }
        for (int again = 0; again < 2; ++again) run_shuffled(players, dice);
        if (::testing::Test::HasFailure()) FAIL() << "program " << k << ", seed " << seed;
        full += std::ranges::any_of(players, [](const auto& player) { return player->is_full(); }) ? 1 : 0;
    }
    EXPECT_EQ(refused, 0);
    EXPECT_GT(in_pieces, 0);
    EXPECT_GT(full, test::cases(25));  // some rank held all that it may
}

// Rank 0 waits with W for a task of rank 2, which waits until rank 1 has what rank 0 sends behind W in the order.
TEST(ThreadedPrograms, ARankSendsBesideATaskThatWaits) {
    const auto on = [](const char* mesh) { return parse_layout(parse_mesh(mesh).value(), "u8[64]").value(); };
    const Layout first = on("d=1[0]");
    const Layout second = on("d=1[1]");
    constexpr Index time = 1'000'000'000;
    Program program;
    program.tasks.push_back({"P", first.mesh, time, {}, {{"a", first}}});
    program.tasks.push_back({"S", parse_mesh("d=1[2]").value(), 0});
    program.tasks.push_back({"W", first.mesh, time, {}, {}, {}, {"S"}});
    program.tasks.push_back({"U", second.mesh, time, {{"a", second}}});
    ProgramSchedule order = schedule(program).value().schedule();
    const Index arrived = time + order.moves.front().picoseconds;
    order.order = {{false, 0, 0}, {false, 1, 0}, {false, 2, time}, {true, 0, time}, {false, 3, arrived}};
    const auto made = judge(program, order, laptop());
    ASSERT_TRUE(made) << made.error().message;

    std::atomic<bool> used = false;
    const auto compute = [&](const TaskRun& run) -> Result<void> {
        if (run.task.name == "U") used = true;
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // only a fault takes so long
        while (run.task.name == "S" && !used) {
            if (std::chrono::steady_clock::now() > until) return fail(Code::backend, "U did not run");
            if (auto going = run.progress(); !going) return going;
            std::this_thread::yield();
        }
        return {};
    };
    local::World world(3);
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < 3; ++rank)
        threads.emplace_back([&, rank] {
            auto runner = ProgramRunner::prepare(made, laptop(), world.rank(rank));
            ASSERT_TRUE(runner) << runner.error().message;
            const auto done = runner->run(compute);
            EXPECT_TRUE(done) << done.error().message;
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(used);
}

}  // namespace
}  // namespace reshard::conformance
