// Scripts of devices: runtimes that know nothing else end, keep the program's rules and no device is over its limit.
#include "reshard/program/script.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "reshard/program/generate.hpp"
#include "reshard/program/schedule.hpp"
#include "support/property.hpp"
#include "unit/program/random_program.hpp"

namespace reshard {
namespace {

constexpr Index devices_max = 8;

// Runs the scripts of all devices. Ready activities start, and running ones end, in an order that dice draw.
class Runtime {
public:
    Runtime(const ScheduleSynthesis& made, program::Dice dice)
        : made_(made), dice_(dice), started_(made.schedule().order.size()), ended_(started_.size()) {
        for (Index device = 0; device < devices_max; ++device)
            if (auto script = script_of(made, laptop(), device)) scripts_.push_back(*script);
        next_.resize(scripts_.size());
    }

    void go() {
        for (std::size_t left = 2 * started_.size(); left > 0; --left) {
            std::vector<std::size_t> ready;
            for (std::size_t k = 0; k < started_.size(); ++k)
                if (started_[k] ? !ended_[k] && may_end(k) : may_start(k)) ready.push_back(k);
            ASSERT_FALSE(ready.empty()) << "the run hangs";
            const std::size_t k = ready[static_cast<std::size_t>(dice_.below(static_cast<int>(ready.size())))];
            if (started_[k]) {
                ended_[k] = true;
                continue;
            }
            expect_rules(k);
            started_[k] = true;
            for (std::size_t d = 0; d < scripts_.size(); ++d) {
                if (steps_here(d, k)) ++next_[d];
                const Index held = held_by(d);
                EXPECT_LE(held, scripts_[d].limit);
                full_ += static_cast<int>(held == scripts_[d].limit);
            }
        }
    }
    [[nodiscard]] int full() const { return full_; }

private:
    // Whether the next step of a device is this activity.
    [[nodiscard]] bool steps_here(std::size_t d, std::size_t k) const {
        return next_[d] < scripts_[d].steps.size() && scripts_[d].steps[next_[d]].activity == k;
    }
    // A task that uses the pieces of a move ends after the move.
    [[nodiscard]] bool may_end(std::size_t k) const {
        return std::ranges::all_of(scripts_, [&](const DeviceScript& script) {
            const auto step = std::ranges::find(script.steps, k, &ScriptStep::activity);
            return step == script.steps.end() || !step->beside || ended_[*step->beside];
        });
    }
    bool may_start(std::size_t k) {
        bool ready = true;
        started_[k] = true;  // the memory is counted as if it had started
        for (std::size_t d = 0; d < scripts_.size() && ready; ++d) {
            const auto& steps = scripts_[d].steps;
            if (std::ranges::find(steps, k, &ScriptStep::activity) == steps.end()) continue;
            ready = steps_here(d, k) && held_by(d) <= scripts_[d].limit &&
                    (!steps[next_[d]].beside || started_[*steps[next_[d]].beside]) &&
                    std::ranges::all_of(steps[next_[d]].after, [&](std::size_t earlier) { return ended_[earlier]; });
        }
        started_[k] = false;
        return ready;
    }
    [[nodiscard]] Index held_by(std::size_t d) const {
        Index held = 0;
        for (const ScriptMemory& one : scripts_[d].memory) {
            const bool taken = !one.taken_by || started_[*one.taken_by];
            const bool freed = !one.freed_by.empty() &&
                               std::ranges::all_of(one.freed_by, [&](std::size_t user) { return ended_[user]; });
            if (taken && !freed && !(one.handed_to && started_[*one.handed_to])) held += one.bytes;
        }
        return held;
    }

    // The rules of the program, read off the program and not off the scripts.
    void expect_rules(std::size_t k) const {
        const Program& program = made_.program();
        const auto& order = made_.schedule().order;
        const ScheduledActivity& one = order[k];
        const auto ended = [&](const std::string& task) {
            for (std::size_t j = 0; j < order.size(); ++j)
                if (!order[j].is_move && program.tasks[order[j].number].name == task) return bool{ended_[j]};
            return false;
        };
        const auto made_before = [&](const std::string& array) {
            for (const Task& task : program.tasks)
                if (std::ranges::count(task.makes, array, &ProgramArray::name) > 0) return ended(task.name);
            return true;
        };
        if (one.is_move) {
            EXPECT_TRUE(made_before(made_.schedule().moves[one.number].array));
        } else {
            for (const ProgramUse& use : program.tasks[one.number].uses) EXPECT_TRUE(made_before(use.array));
            for (const std::string& earlier : program.tasks[one.number].after) EXPECT_TRUE(ended(earlier));
        }
        for (std::size_t j = 0; j < order.size(); ++j) {
            if (order[j].is_move && !one.is_move) {
                const auto& users = made_.schedule().moves[order[j].number].users;
                if (std::ranges::count(users, one.number, &UseNumber::task) > 0) {
                    EXPECT_TRUE(made_.schedule().moves[order[j].number].in_pieces ? started_[j] : ended_[j]);
                }
            }
            if (started_[j] && !ended_[j]) {
                EXPECT_FALSE(share(one, order[j]));
            }
        }
    }
    // Whether two activities need one engine or one card.
    [[nodiscard]] bool share(const ScheduledActivity& a, const ScheduledActivity& b) const {
        if (a.is_move != b.is_move) return false;
        const Program& program = made_.program();
        std::vector<Index> all(devices_max);
        std::iota(all.begin(), all.end(), 0);
        if (a.is_move) {
            const auto& moves = made_.schedule().moves;
            const auto cards = cards_of(moves[b.number].plan, laptop(), all);
            return std::ranges::any_of(cards_of(moves[a.number].plan, laptop(), all),
                                       [&](const Card& card) { return std::ranges::find(cards, card) != cards.end(); });
        }
        const Task& first = program.tasks[a.number];
        const Task& second = program.tasks[b.number];
        return first.engine == second.engine && std::ranges::any_of(all, [&](Index device) {
                   return position_of(first.mesh, device) && position_of(second.mesh, device);
               });
    }

    const ScheduleSynthesis& made_;
    program::Dice dice_;
    std::vector<DeviceScript> scripts_;
    std::vector<std::size_t> next_;  // of each device, the step that it starts next
    std::vector<bool> started_, ended_;
    int full_ = 0;
};

// At the stated times the memory of a script is what the judge printed.
void expect_same_memory(const ScheduleSynthesis& made) {
    const auto& order = made.schedule().order;
    for (const PlaceVerdict& place : made.verdict().places) {
        const DeviceScript script = script_of(made, laptop(), place.device).value();
        EXPECT_EQ(script.limit, place.limit);
        for (const HeldBytes& held : place.held) {
            const auto has_started = [&](std::size_t k) { return order[k].start <= held.picoseconds; };
            const auto has_ended = [&](std::size_t k) {
                const Index picoseconds = picoseconds_of(made.program(), made.schedule(), order[k]);
                return order[k].start + picoseconds <= held.picoseconds;
            };
            Index bytes = 0;
            for (const ScriptMemory& one : script.memory)
                if ((!one.taken_by || has_started(*one.taken_by)) &&
                    (one.freed_by.empty() || !std::ranges::all_of(one.freed_by, has_ended)) &&
                    !(one.handed_to && has_started(*one.handed_to)))
                    bytes += one.bytes;
            EXPECT_EQ(bytes, held.bytes) << "device " << place.device << " at " << held.picoseconds;
        }
    }
}

TEST(Scripts, RunsOfRandomProgramsEndWithinTheirLimits) {
    int full = 0, in_pieces = 0;
    for (int k = 0; k < test::cases(200); ++k) {
        const std::uint64_t seed = test::drawn_seed() * 4096 + static_cast<std::uint64_t>(k);
        test::RandomProgram random(seed, 4, k % 3 == 0);
        ScheduleOptions options;
        options.rounds_max = 50;
        options.states_max = 1000;
        const Program program = random.draw();
        auto made = schedule(program, options).value();
        Index peak = 0;
        for (const PlaceVerdict& place : made.verdict().places) peak = std::max(peak, place.peak_bytes);
        options.footprint_bytes_max = peak - peak / 8;  // often too little
        if (auto tight = schedule(program, options)) made = *tight;
        expect_same_memory(made);
        in_pieces += static_cast<int>(std::ranges::count(made.schedule().moves, true, &ProgramMove::in_pieces));
        for (std::uint64_t times = 0; times < 5; ++times) {
            Runtime run(made, program::Dice(seed * 5 + times));
            run.go();
            if (::testing::Test::HasFailure()) FAIL() << "program " << k;
            full += run.full();
        }
    }
    EXPECT_GT(full, 0);
    EXPECT_GT(in_pieces, 0);
}

TEST(Scripts, RunsOfPipelinesEndWithinTheirLimits) {
    for (const char* const text : {"1f1b stages=3 microbatches=4 activations=4", "zero3 layers=4",
                                   "refit buckets=4 hold=2", "coupled windows=3", "interleaved stages=2"}) {
        const auto made = schedule(generate(text).value(), {.rounds_max = 50}).value();
        expect_same_memory(made);
        for (std::uint64_t times = 0; times < 5; ++times) Runtime(made, program::Dice(times)).go();
    }
}

TEST(Scripts, HasStepsAndMemoryOfOneDevice) {
    const Mesh left = parse_mesh("x=2[0,1]").value();
    const Mesh right = parse_mesh("y=2[2,3]").value();
    const Layout rows = parse_layout(left, "f32[8@x,4]").value();
    const Layout columns = parse_layout(right, "f32[8,4@y]").value();
    Program program;
    program.arrays.push_back({"w", rows, true});
    program.tasks.push_back({"make", left, 1000, {{"w", rows}}, {{"a", rows}}});
    program.tasks.push_back({"far", right, 1000, {{"a", columns}}, {{"b", columns}}, {}, {}, 24});
    program.tasks.push_back({"next", right, 1000, {{"b", columns}}, {{"c", columns}}, {"b"}});
    program.limits.push_back({right, 200});
    const auto made = schedule(program).value();
    ASSERT_EQ(made.schedule().order.size(), 4U);  // make, the move, far, next
    const DeviceScript near = script_of(made, laptop(), 1).value();
    EXPECT_EQ(near.limit, index_max);
    EXPECT_EQ(near.steps, (std::vector<ScriptStep>{{0, {}}, {1, {0}}}));
    EXPECT_EQ(near.memory, (std::vector<ScriptMemory>{{"w", rows, 64}, {"a", rows, 64, 0, {1}}}));
    const DeviceScript far = script_of(made, laptop(), 3).value();
    EXPECT_EQ(far.limit, 200);
    EXPECT_EQ(far.steps, (std::vector<ScriptStep>{{1, {0}}, {2, {1}}, {3, {2}}}));
    EXPECT_EQ(far.memory, (std::vector<ScriptMemory>{{"a", columns, 64, 1, {2}},
                                                     {"b", columns, 64, 2, {}, 3},
                                                     {"far", {}, 24, 2, {2}},
                                                     {"c", columns, 64, 3, {3}}}));
    EXPECT_EQ(script_of(made, laptop(), 4).error().code, Code::usage);
    EXPECT_EQ(script_of(made, laptop(), -1).error().code, Code::usage);
}

}  // namespace
}  // namespace reshard
