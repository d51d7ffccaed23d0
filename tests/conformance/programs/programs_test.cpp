// Programs on all backends: data, signals, failures, measured times.
#include <array>
#include <atomic>

#include "conformance/harness.hpp"
#include "drawn.hpp"
#include "player.hpp"
#include "reshard/program/generate.hpp"
#include "reshard/text.hpp"

namespace reshard::conformance {
namespace {

void expect_two_runs(Player& player) {
    for (int again = 0; again < 2; ++again) {
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        const auto done = (*run)->wait();
        ASSERT_TRUE(done) << done.error().message;
        player.expect_right();
    }
}

TEST(Programs, RandomOnesMoveEveryByteWithinTheirLimits) {
    std::vector<ScheduleSynthesis> drawn;
    Index in_pieces = 0;
    for (int k = 0; k < test::cases(20); ++k) {
        drawn.push_back(drawn_schedule(test::drawn_seed() * 4096 + static_cast<std::uint64_t>(k), 8, k % 4 == 0));
        in_pieces += pieced(drawn.back());
    }
    RecordProperty("in_pieces", static_cast<int>(in_pieces));
    harness().on_every_rank([&](Backend& backend) {
        for (std::size_t k = 0; k < drawn.size(); ++k) {
            Player player(drawn[k], backend);
            ASSERT_TRUE(player.prepared()) << player.error().message;
            ASSERT_NO_FATAL_FAILURE(expect_two_runs(player));
            ASSERT_FALSE(::testing::Test::HasFailure()) << "program " << k;
        }
    });
}

TEST(Programs, APipelineHandsActivationsOn) {
    const auto made =
        schedule(generate("1f1b stages=4 microbatches=6 width=2 message=64KiB activation=128KiB").value()).value();
    harness().on_every_rank([&](Backend& backend) {
        Player player(made, backend);
        ASSERT_TRUE(player.prepared()) << player.error().message;
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        const auto done = (*run)->wait();
        ASSERT_TRUE(done) << done.error().message;
        player.expect_right();
        const Program measured = player.runner().measured().value();
        EXPECT_TRUE(validate(measured));
        for (const Task& task : measured.tasks) {
            EXPECT_GT(task.picoseconds, 0) << task.name;
            EXPECT_LT(task.picoseconds, 60'000'000'000'000) << task.name;
        }
        EXPECT_TRUE(schedule(measured, {.rounds_max = 50}));
    });
}

// Two ranks make weights in rows. Two others use them in columns, row by row, as long as they travel.
Program in_step(const char* source, const char* target, std::size_t dim) {
    const Layout rows = parse_layout(parse_mesh("t=2[0,1]").value(), source).value();
    const Layout columns = parse_layout(parse_mesh("r=2[5,3]").value(), target).value();
    constexpr Index time = 1'000'000'000;
    Program program;
    program.tasks.push_back({"make", rows.mesh, time, {}, {{"w", rows}}});
    program.tasks.push_back({"use", columns.mesh, time, {{"w", columns}}, {{"sum", columns, true}}});
    program.tasks.back().uses.front().pieces_along = dim;
    program.tasks.push_back({"end", columns.mesh, time, {{"sum", columns}}});
    return program;
}

TEST(Programs, PiecesAreUsedAsTheyArrive) {
    for (const auto& [source, target, dim] :
         {std::tuple("f32[1024@t,512]", "f32[1024,512@r]", 0), std::tuple("f32[1024@t,512]", "f32[1024,512@r]", 1),
          std::tuple("f32[1023@t,512]", "f32[1023@r,512]", 0), std::tuple("f32[512,1023]", "f32[512,1023@r]", 1)}) {
        const auto made = schedule(in_step(source, target, static_cast<std::size_t>(dim))).value();
        ASSERT_EQ(pieced(made), 1) << source;
        harness().on_every_rank([&](Backend& backend) {
            Player player(made, backend);
            ASSERT_TRUE(player.prepared()) << player.error().message;
            ASSERT_NO_FATAL_FAILURE(expect_two_runs(player));
            if (backend.rank() == 3) {
                EXPECT_GT(player.calls(), 3U);
            }
            const Program measured = player.runner().measured().value();
            EXPECT_GT(*measured.tasks[1].uses[0].move_picoseconds, 0);
            EXPECT_EQ(measured.tasks[1].uses[0].pieces_along, dim);
        });
    }
}

// The limit has room for a run, but not for its input beside the result of the run before.
TEST(Programs, TheNextInputWaitsForRoom) {
    const Layout whole = parse_layout(parse_mesh("d=8").value(), "u8[64@d]").value();
    Program program;
    program.arrays.push_back({"x", whole});
    program.tasks.push_back({"first", whole.mesh, 1000, {{"x", whole}}, {{"y", whole, true}}, {"x"}});
    program.limits.push_back({whole.mesh, 8});
    const auto made = schedule(program).value();
    harness().on_every_rank([&](Backend& backend) {
        Player player(made, backend);
        ASSERT_TRUE(player.prepared()) << player.error().message;
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        ASSERT_TRUE((*run)->wait());
        const auto early = player.runner().tile("x");
        ASSERT_FALSE(early);
        EXPECT_EQ(early.error().code, Code::usage);
        EXPECT_NE(early.error().message.find("array x takes 8 bytes, and this rank holds 8 of at most 8"),
                  std::string::npos)
            << early.error().message;
        player.expect_right();  // y is still there
        ASSERT_NO_FATAL_FAILURE(expect_two_runs(player));
    });
}

TEST(Programs, ATaskThatFailsInAPieceEndsAllRanks) {
    const auto made = schedule(in_step("f32[1024@t,512]", "f32[1024,512@r]", 0)).value();
    harness().on_every_rank([&](Backend& backend) {
        Player player(made, backend);
        ASSERT_TRUE(player.prepared()) << player.error().message;
        player.in_task = [&](const TaskRun& run) -> Result<void> {
            if (run.piece && run.piece->place == 1 && backend.rank() == 5)
                return fail(Code::usage, "it is not a number");
            return run.progress();
        };
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        const auto done = (*run)->wait();
        ASSERT_FALSE(done) << "rank " << backend.rank();
        EXPECT_NE(done.error().message.find("task use on rank 5: it is not a number"), std::string::npos)
            << done.error().message;
    });
}

// A mesh of the first ranks, one of the last, and a chain of tasks that share no data.
TEST(Programs, ATaskWaitsForATaskOnOtherDevices) {
    Program program;
    const Mesh left = parse_mesh("x=2[0,1]").value();
    const Mesh right = parse_mesh("x=3[5,6,7]").value();
    program.tasks.push_back({"a", left, 1000});
    program.tasks.push_back({"b", right, 1000});
    program.tasks.back().after = {"a"};
    program.tasks.push_back({"c", left, 1000});
    program.tasks.back().after = {"b"};
    const auto made = schedule(program).value();
    std::array<std::atomic<int>, 3> ended{};  // of a local world; under MPI each rank counts its own
    harness().on_every_rank([&](Backend& backend) {
        Player player(made, backend);
        ASSERT_TRUE(player.prepared()) << player.error().message;
        player.in_task = [&](const TaskRun& run) -> Result<void> {
            const int number = run.task.name[0] - 'a';
            if (backend.name() == "local" && number > 0) {
                const int before = number == 1 ? 2 : 3;
                EXPECT_EQ(ended[static_cast<std::size_t>(number - 1)].load(), before) << run.task.name;
            }
            ++ended[static_cast<std::size_t>(number)];
            return {};
        };
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        const auto done = (*run)->wait();
        ASSERT_TRUE(done) << done.error().message;
        player.expect_right();
    });
}

TEST(Programs, AFailingTaskEndsAllRanksWithItsMessage) {
    const auto made =
        schedule(generate("1f1b stages=4 microbatches=4 width=2 message=64KiB activation=128KiB").value()).value();
    harness().on_every_rank([&](Backend& backend) {
        Player player(made, backend);
        ASSERT_TRUE(player.prepared()) << player.error().message;
        player.in_task = [&](const TaskRun& run) -> Result<void> {
            if (run.task.name == "F2.2" && backend.rank() == 5) return fail(Code::usage, "the loss is not a number");
            return run.progress();
        };
        auto run = player.start();
        ASSERT_TRUE(run) << run.error().message;
        const auto done = (*run)->wait();
        ASSERT_FALSE(done) << "rank " << backend.rank();
        EXPECT_NE(done.error().message.find("task F2.2 on rank 5: the loss is not a number"), std::string::npos)
            << done.error().message;  // a timeout would have other words
        run->reset();
        EXPECT_EQ(player.start().error().code, Code::backend);
    });
}

TEST(Programs, RanksWithOtherSchedulesAreTold) {
    const auto one = schedule(generate("refit buckets=2").value()).value();
    const auto two = schedule(generate("refit buckets=3").value()).value();
    harness().on_every_rank([&](Backend& backend) {
        const auto made = ProgramRunner::prepare(backend.rank() == 1 ? two : one, laptop(), backend);
        if (made) {  // a rank of a local world learns when it waits
            EXPECT_EQ(backend.name(), "local");
            return;
        }
        EXPECT_EQ(made.error().code, Code::mismatch);
    });
}

}  // namespace
}  // namespace reshard::conformance
