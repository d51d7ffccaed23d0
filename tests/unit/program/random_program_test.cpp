// Random programs with layouts: the judge and the times of an order agree to the picosecond.
#include <gtest/gtest.h>

#include "reshard/program/schedule.hpp"
#include "reshard/text.hpp"
#include "support/property.hpp"
#include "synth/program/dice.hpp"

namespace reshard {
namespace {

// Tasks on meshes that are disjoint, overlap, or lie in each other. Arrays are cut, whole or summands.
class RandomProgram {
public:
    explicit RandomProgram(std::uint64_t seed) : dice_(seed) {}

    Program draw() {
        Program program;
        for (int k = dice_.below(3); k > 0; --k) {
            program.arrays.push_back({name(), layout(mesh()), dice_.below(3) == 0});
            made_.push_back(program.arrays.back());
        }
        for (int t = 3 + dice_.below(8); t > 0; --t) program.tasks.push_back(task("t" + std::to_string(t)));
        return program;
    }

    int below(int count) { return dice_.below(count); }

private:
    std::string name() { return "a" + std::to_string(names_++); }
    Mesh mesh() {
        const char* const meshes[] = {"x=2[0,1]", "x=2[2,3]", "x=2[1,2]", "x=4", "x=2,y=2", "x=1[3]"};
        return parse_mesh(meshes[dice_.below(6)]).value();
    }
    Layout layout(const Mesh& mesh) {
        const char* const layouts[] = {"f32[8@x,4]", "f32[8,4@x]", "f32[8,4]", "f32[8@x,4]"};
        return parse_layout(mesh, layouts[dice_.below(4)]).value();
    }

    Task task(const std::string& called) {
        Task task{called, mesh(), 100'000 * (1 + dice_.below(20))};
        for (int k = dice_.below(3); k > 0 && !made_.empty(); --k) {
            const ProgramArray& used =
                made_[made_.size() - 1 -
                      static_cast<std::size_t>(dice_.below(std::min<int>(4, static_cast<int>(made_.size()))))];
            if (std::ranges::count(task.uses, used.name, &ProgramUse::array) > 0) continue;
            const bool here = used.layout.mesh == task.mesh && dice_.below(3) > 0;
            task.uses.push_back({used.name, here ? used.layout : layout(task.mesh), dice_.below(5) == 0});
            if (dice_.below(4) == 0) task.uses.back().move_picoseconds = 100'000 * dice_.below(15);
        }
        std::vector<ProgramArray> made;
        for (int k = dice_.below(3); k > 0; --k) made.push_back({name(), layout(task.mesh), dice_.below(8) == 0});
        // A made array takes over an input of its own layout, so that nothing is left over.
        if (!made.empty() && !task.uses.empty() && dice_.below(2) == 0) {
            const ProgramUse& use = task.uses.front();
            const auto source = std::ranges::find(made_, use.array, &ProgramArray::name);
            if (!source->kept && equivalent(source->layout, use.layout)) {
                task.donates.push_back(use.array);
                made.front().layout = source->layout;
                made_.erase(source);
            }
        }
        task.makes = made;
        made_.insert(made_.end(), made.begin(), made.end());
        if (dice_.below(4) == 0) task.scratch_bytes = 16 * dice_.below(8);
        if (dice_.below(5) == 0) task.engine = "host";
        if (!tasks_.empty() && dice_.below(5) == 0)
            task.after.push_back(tasks_[static_cast<std::size_t>(dice_.below(static_cast<int>(tasks_.size())))]);
        tasks_.push_back(called);
        return task;
    }

    program::Dice dice_;
    int names_ = 0;
    std::vector<ProgramArray> made_;
    std::vector<std::string> tasks_;
};

TEST(RandomPrograms, NothingCanStartAPicosecondEarlier) {
    int shifted = 0;
    int limited = 0;
    int donated = 0;
    for (int k = 0; k < test::cases(200); ++k) {
        RandomProgram random(test::drawn_seed() * 4096 + static_cast<std::uint64_t>(k));
        const Program program = random.draw();
        ScheduleOptions options;
        options.rounds_max = 100;
        options.states_max = 2000;
        auto made = schedule(program, options);
        ASSERT_TRUE(made.has_value()) << k << ": " << describe(made.error());
        if (k % 4 > 0) {  // less memory, as long as it suffices
            Index peak = 0;
            for (const PlaceVerdict& place : made->verdict().places) peak = std::max(peak, place.peak_bytes);
            for (Index less = peak; less > 0; less -= 16 + less / 16) {
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
}

}  // namespace
}  // namespace reshard
