// Sends plans between meshes, over any devices in any order, to the checker that is extracted from the proofs. The two
// judges must agree on plans from every rule that plans between meshes, and on damaged plans.
#include <gtest/gtest.h>

#include <iostream>
#include <map>

#include "differential/checker.hpp"
#include "differential/drawn_plans.hpp"
#include "reshard/text.hpp"
#include "src/text/certificate.hpp"
#include "support/anywhere.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

constexpr std::uint64_t seed = 20261123;
constexpr int shown_max = 5;

struct Asked {
    Plan plan;
    Result<Verdict> verdict;
};

/// Options that switch a few rules off, so that each rule has its turn.
Options options_of(Draw& draw, const Problem& problem) {
    Options options = draw.options(problem);
    options.limits = {};
    for (const Rule& rule : rules())
        if (draw.once_in(3)) options.disabled_rules.push_back(std::string(rule.name));
    return options;
}

class CertificateBetween : public ::testing::Test {
protected:
    void SetUp() override {
        if (!Checker::built()) GTEST_SKIP() << "this build has no checker: it needs coqc and ocamlopt";
    }

    // Asks about plans for random problems. If `damaged`, the plans are damaged, and the C++ judge may refuse them.
    void ask(std::size_t wanted, Checker& checker, bool damaged) {
        Draw draw(seed + (damaged ? 1 : 0));
        while (asked_.size() < wanted) {
            const Problem problem = problem_of(random_question(draw.seed(), 12));
            if (same_order(problem.source.mesh, problem.target.mesh)) continue;
            auto made = synthesize(problem, options_of(draw, problem));
            if (!made) continue;
            Plan plan = damaged ? draw.mutant(made->plan()) : made->plan();
            const auto line = notation::certificate(plan);
            if (!line) {
                ++unwritten_;
                continue;
            }
            checker.ask(*line);
            ++rules_[made->rule];
            auto verdict = check(plan);
            asked_.push_back({std::move(plan), std::move(verdict)});
        }
    }

    // Counts the plans that both judges accept with the same numbers. Both must refuse the other plans.
    std::size_t compare(const std::vector<Answer>& answers) {
        std::size_t accepted = 0;
        int shown = 0;
        for (std::size_t i = 0; i < asked_.size(); ++i) {
            const auto& [plan, verdict] = asked_[i];
            std::string wrong;
            if (verdict.has_value() != answers[i].accepted)
                wrong = verdict ? "accept" : verdict.error().message;
            else if (verdict)
                wrong = differ(plan, *verdict, answers[i]);
            accepted += verdict.has_value() && wrong.empty() ? 1 : 0;
            if (!wrong.empty() && ++shown <= shown_max)
                ADD_FAILURE() << format(plan) << "C++: " << wrong << "\nCoq: " << answers[i].text << "\n"
                              << *notation::certificate(plan);
        }
        EXPECT_EQ(shown, 0);
        return accepted;
    }

    std::vector<Asked> asked_;
    std::map<std::string, int> rules_;
    int unwritten_ = 0;
};

TEST_F(CertificateBetween, PlansAreAcceptedWithTheSameNumbers) {
    Checker checker("plans_between");
    ask(long_run() ? 20000 : 2000, checker, false);
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked_.size());
    EXPECT_EQ(compare(answers), asked_.size());
    for (const char* rule : {"direct_exchange", "fetch_once", "reduce_first", "scatter_then_gather", "reorder"})
        EXPECT_GT(rules_[rule], 0) << rule;
    std::cout << "  " << asked_.size() << " plans between meshes:";
    for (const auto& [rule, times] : rules_) std::cout << " " << rule << " " << times;
    std::cout << "; not written down: " << unwritten_ << "\n";
}

TEST_F(CertificateBetween, BothJudgesAgreeOnDamagedPlans) {
    Checker checker("damaged_between");
    const std::size_t wanted = long_run() ? 20000 : 2000;
    ask(wanted, checker, true);
    const auto answers = checker.answers();
    ASSERT_EQ(answers.size(), asked_.size());
    const std::size_t accepted = compare(answers);
    EXPECT_GT(accepted, wanted / 50);
    EXPECT_LT(accepted, wanted * 4 / 5);
    std::cout << "  " << accepted << " of " << wanted << " damaged plans between meshes accepted by both\n";
}

}  // namespace
}  // namespace reshard::test
