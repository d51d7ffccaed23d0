// Translation validation: sends plans and schedules to the checker that is extracted from the proofs. The two judges
// must agree on good and on damaged ones.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>
#include <map>

#include "differential/checker.hpp"
#include "differential/drawn_plans.hpp"
#include "reshard/text.hpp"
#include "src/text/certificate.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/replay.hpp"

namespace reshard::test {
namespace {

constexpr std::uint64_t seed = 20211203;
constexpr Index devices_max = 4096;
/// Damaged plans on up to this many devices are carried out element by element if both judges accept them.
constexpr Index simulated_devices_max = 48;
constexpr Index simulated_elements_max = Index{1} << 16;
constexpr int shown_max = 5;

class Certificate : public ::testing::Test {
protected:
    void SetUp() override {
        if (!Checker::built()) GTEST_SKIP() << "this build has no checker: it needs coqc and ocamlopt";
    }
    void TearDown() override {
        if (IsSkipped()) return;
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin_;
        std::cout << "  " << spent.count() << " s" << std::endl;
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

template <class T>
T drawn(const rc::Gen<T>& gen, Draw& draw) {
    return gen(rc::Random(draw.seed()), rc::kNominalSize).value();
}

Problem problem_of(const Pair& pair) { return {layout_of(pair.source), layout_of(pair.target)}; }

std::optional<Plan> synthesized(const Problem& problem, const Options& options) {
    auto made = synthesize(problem, options);
    if (!made) return std::nullopt;
    return made->plan();
}

/// Small meshes find the corner cases. Large ones show that no step enumerates more than it must.
Index most_devices(Draw& draw) { return draw.once_in(2) ? 64 : draw.once_in(2) ? 512 : devices_max; }

/// A plan from each source of plans in turn; nothing if the problem has no plan under its limits.
std::optional<Plan> draw_plan(Draw& draw, int turn, Options& options) {
    if (turn % 4 == 0) return plan_of(drawn(walks(), draw));
    if (turn % 4 == 1) return draw.walk(draw.problem(most_devices(draw)).source, 6);
    const Problem problem = turn % 4 == 2 ? problem_of(drawn(pairs(), draw)) : draw.problem(most_devices(draw));
    options = draw.options(problem);
    return synthesized(problem, options);
}

/// A plan that both judges have been asked about.
struct Request {
    Plan plan;
    Result<Verdict> verdict;
};

void show(int& shown, const Plan& plan, const std::string& cpp, const std::string& coq) {
    if (++shown <= shown_max) ADD_FAILURE() << format(plan) << "C++: " << cpp << "\nCoq: " << coq;
}

TEST_F(Certificate, PlansAreAcceptedWithTheSameNumbers) {
    const std::size_t wanted = long_run() ? 100000 : 4000;
    Draw draw(seed);
    Checker checker("plans");
    std::vector<Request> asked;
    std::map<std::string, int> kinds;
    int infeasible = 0, unrefined = 0, large = 0, uneven = 0;
    for (int turn = 0; asked.size() < wanted; ++turn) {
        Options options;
        auto plan = draw_plan(draw, turn, options);
        if (!plan) {
            ++infeasible;
            continue;
        }
        const Index size = size_of(plan->source.dtype);
        std::optional<Index> elements_max;
        if (options.limits.peak_bytes_max) elements_max = *options.limits.peak_bytes_max / size;
        const auto line = notation::certificate(*plan, elements_max);
        if (!line) {
            ASSERT_EQ(line.error().code, Code::unsupported) << format(*plan) << line.error().message;
            ++unrefined;
            continue;
        }
        auto verdict = check(*plan, {.peak_bytes_max = options.limits.peak_bytes_max});  // run as steps
        ASSERT_TRUE(verdict.has_value()) << format(*plan) << verdict.error().message;
        for (const Step& step : plan->steps) ++kinds[std::string(name(step.kind))];
        large += device_count(plan->source) > 64;
        uneven += !divides(plan->source) || !divides(plan->target);
        checker.ask(*line);
        asked.push_back({std::move(*plan), std::move(verdict)});
    }
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked.size());
    int shown = 0, optimal = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto& [plan, verdict] = asked[i];
        const std::string wrong = answers[i].accepted ? differ(plan, *verdict, answers[i]) : "accepted";
        if (!wrong.empty()) show(shown, plan, wrong, answers[i].text);
        optimal += answers[i].optimal;
    }
    EXPECT_EQ(shown, 0);
    EXPECT_EQ(kinds.size(), all_step_kinds.size() - 1);  // views are erased, and no question casts
    std::cout << "  " << asked.size() << " plans accepted with the same numbers: " << optimal << " proved optimal, "
              << large << " on more than 64 devices, " << uneven << " uneven; left out: " << unrefined
              << " without a common refinement; " << infeasible << " problems without a plan\n  steps:";
    for (const auto& [kind, times] : kinds) std::cout << " " << kind << " " << times;
    std::cout << std::endl;
}

bool simulable(const Plan& plan) {
    for (std::size_t i = 0; i <= plan.steps.size(); ++i)
        if (device_count(plan.source) * tile_elements(layout_before(plan, i)) > simulated_elements_max) return false;
    return true;
}

TEST_F(Certificate, BothJudgesAgreeOnDamagedPlans) {
    const std::size_t wanted = long_run() ? 50000 : 4000;
    Draw draw(seed + 1);
    Checker checker("damaged_plans");
    std::vector<Request> asked;
    int unrefined = 0, illegible = 0;
    for (int turn = 0; asked.size() < wanted; ++turn) {
        const Plan plan = draw.mutant(turn % 2 == 0 ? plan_of(drawn(walks(), draw))
                                                    : draw.walk(draw.problem(simulated_devices_max).source, 6));
        if (!simulable(plan)) continue;
        const auto line = notation::certificate(plan);
        auto verdict = check(plan);
        if (!line) {
            // A plan that cannot be written has no common refinement, or C++ refuses it.
            line.error().code == Code::unsupported ? ++unrefined : ++illegible;
            if (line.error().code != Code::unsupported) {
                EXPECT_FALSE(verdict.has_value()) << format(plan) << line.error().message;
            }
            continue;
        }
        checker.ask(*line);
        asked.push_back({plan, std::move(verdict)});
    }
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked.size());
    int shown = 0, refused = 0, simulated = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto& [plan, verdict] = asked[i];
        const std::string cpp = verdict ? "accept" : verdict.error().message;
        if (verdict.has_value() != answers[i].accepted) {
            show(shown, plan, cpp, answers[i].text);
            continue;
        }
        if (!verdict) {
            ++refused;
            continue;
        }
        const std::string wrong = differ(plan, *verdict, answers[i]);
        if (!wrong.empty()) show(shown, plan, wrong, answers[i].text);
        const Values array = make_array(shape(plan.source));
        const auto start = distribute(plan.source, array);
        ASSERT_TRUE(start.has_value()) << format(plan);
        const auto done = simulate(plan, *start);
        EXPECT_TRUE(done && denotes(plan.target, *done, array)) << format(plan);
        if (simulated % 10 == 0) {
            EXPECT_EQ(replay(plan, *verdict), "") << format(plan);
        }
        ++simulated;
    }
    EXPECT_EQ(shown, 0);
    EXPECT_GE(refused, static_cast<int>(wanted / 5));
    EXPECT_GE(simulated, static_cast<int>(wanted / 20));
    std::cout << "  " << asked.size() << " damaged plans, the judges agree on all but " << shown << ": "
              << 100.0 * refused / static_cast<double>(asked.size()) << "% rejected, " << simulated
              << " accepted ones simulated and right; not written down: " << illegible << " refused in C++, "
              << unrefined << " without a common refinement\n";
}

/// A typed step on at most 64 devices and its schedules.
struct Moved {
    Layout before;
    Step step;
    std::vector<Schedule> schedules;
};

std::optional<Moved> draw_moved(Draw& draw, int turn) {
    Moved moved;
    if (turn % 2 == 0) {
        const StepKind kind = kinds_of_one_shape[static_cast<std::size_t>(turn / 2) % kinds_of_one_shape.size()];
        const Pair pair = drawn(typed_pairs(kind), draw);
        moved = {layout_of(pair.source), {kind, layout_of(pair.target)}, {}};
    } else {
        const Plan plan = draw.walk(draw.problem(notation::certified_ranks_max).source, 2);
        if (plan.steps.empty()) return std::nullopt;
        moved = {layout_before(plan, plan.steps.size() - 1), plan.steps.back(), {}};
    }
    moved.schedules = all_schedules(moved.before, moved.step);
    return moved;
}

std::string print(const Moved& moved) {
    return format(moved.before.mesh) + ": " + format(moved.before) + " " + std::string(name(moved.step.kind)) + " " +
           format(moved.step.layout) + "\n";
}

TEST_F(Certificate, SchedulesAreAccepted) {
    const std::size_t wanted = long_run() ? 10000 : 1000;
    Draw draw(seed + 2);
    Checker checker("schedules");
    std::vector<std::string> asked;
    int unrefined = 0;
    for (int turn = 0; asked.size() < wanted; ++turn) {
        const auto moved = draw_moved(draw, turn);
        if (!moved) continue;
        const auto line = notation::certificate(moved->before, moved->step, moved->schedules);
        if (!line) {
            ASSERT_EQ(line.error().code, Code::unsupported) << print(*moved) << line.error().message;
            ++unrefined;
            continue;
        }
        checker.ask(*line);
        asked.push_back(print(*moved));
    }
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked.size());
    int refused = 0;
    for (std::size_t i = 0; i < asked.size(); ++i)
        if (!answers[i].accepted && ++refused <= shown_max) ADD_FAILURE() << asked[i] << answers[i].text;
    EXPECT_EQ(refused, 0);
    std::cout << "  " << asked.size() << " steps' schedules accepted; left out: " << unrefined
              << " without a common refinement\n";
}

TEST_F(Certificate, BothJudgesAgreeOnDamagedSchedules) {
    const std::size_t wanted = long_run() ? 10000 : 4000;
    Draw draw(seed + 3);
    Checker checker("damaged_schedules");
    std::vector<Moved> asked;
    for (int turn = 0; asked.size() < wanted; ++turn) {
        auto moved = draw_moved(draw, turn);
        if (!moved || !draw.damage(moved->schedules)) continue;
        const auto line = notation::certificate(moved->before, moved->step, moved->schedules);
        if (!line) continue;
        checker.ask(*line);
        asked.push_back(std::move(*moved));
    }
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked.size());
    int shown = 0, refused = 0, right = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        const Moved& moved = asked[i];
        const auto judged = check_schedules(moved.before, moved.step, moved.schedules);
        if (judged.has_value() != answers[i].accepted) {
            if (++shown <= shown_max)
                ADD_FAILURE() << print(moved) << "C++: " << (judged ? "accept" : judged.error().message)
                              << "\nCoq: " << answers[i].text << "\n"
                              << *notation::certificate(moved.before, moved.step, moved.schedules);
            continue;
        }
        if (!judged) {
            ++refused;
            continue;
        }
        const auto held = holdings(moved.before);
        const auto after = holdings(moved.step.layout);
        const auto extents = shape(moved.before);
        const Values array = make_array(extents);
        const Delivery done = deliver(held, after, moved.schedules, spread(held, extents, array));
        EXPECT_EQ(done.fault, "") << print(moved);
        EXPECT_EQ(fault(after, extents, array, done.tiles), "") << print(moved);
        ++right;
    }
    EXPECT_EQ(shown, 0);
    EXPECT_GE(refused, static_cast<int>(wanted / 5));
    EXPECT_GE(right, static_cast<int>(wanted / 100));
    std::cout << "  " << asked.size() << " damaged schedules, the judges agree on all but " << shown << ": "
              << 100.0 * refused / static_cast<double>(asked.size()) << "% rejected, " << right
              << " accepted ones delivered and right\n";
}

}  // namespace
}  // namespace reshard::test
