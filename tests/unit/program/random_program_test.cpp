// Random programs with layouts: the judge and the times of an order agree to the picosecond.
#include <gtest/gtest.h>

#include "reshard/program/schedule.hpp"
#include "support/property.hpp"
#include "unit/program/random_program.hpp"

namespace reshard {
namespace {

TEST(RandomPrograms, NothingCanStartAPicosecondEarlier) {
    int shifted = 0;
    int limited = 0;
    int donated = 0;
    int in_pieces = 0;
    for (int k = 0; k < test::cases(200); ++k) {
        test::RandomProgram random(test::drawn_seed() * 4096 + static_cast<std::uint64_t>(k), 4, k % 3 == 0);
        const Program program = random.draw();
        ScheduleOptions options;
        options.rounds_max = 100;
        options.states_max = 2000;
        auto made = schedule(program, options);
        ASSERT_TRUE(made.has_value()) << k << ": " << describe(made.error());
        if (k % 4 > 0) {  // less memory, as long as it suffices
            Index peak = 0;
            for (const PlaceVerdict& place : made->verdict().places) peak = std::max(peak, place.peak_bytes);
            for (Index less = peak; less > 0; less -= 16 + less / (k % 3 == 0 ? 4 : 16)) {
                options.footprint_bytes_max = less;
                auto next = schedule(program, options);
                if (!next) {
                    EXPECT_EQ(next.error().code, Code::infeasible) << describe(next.error());
                    break;
                }
                for (const PlaceVerdict& place : next->verdict().places) EXPECT_LE(place.peak_bytes, less);
                made = std::move(next);
            }
            ++limited;
        }
        for (const Task& task : program.tasks) donated += static_cast<int>(task.donates.size());
        in_pieces += static_cast<int>(std::ranges::count(made->schedule().moves, true, &ProgramMove::in_pieces));
        EXPECT_LE(made->lower_bound, made->verdict().picoseconds) << k;
        for (std::size_t i = 0; i < made->schedule().order.size(); ++i) {
            ProgramSchedule earlier = made->schedule();
            if (earlier.order[i].start == 0) continue;
            --earlier.order[i].start;
            EXPECT_FALSE(check(made->program(), earlier, laptop()).has_value())
                << k << ": " << name_of(program, earlier, earlier.order[i]);
            ++shifted;
        }
    }
    EXPECT_GT(shifted, test::cases(200));
    EXPECT_GT(limited, 0);
    EXPECT_GT(donated, 0);
    EXPECT_GT(in_pieces, 0);
}

}  // namespace
}  // namespace reshard
