// Every text that a person can write has one meaning. Over random problems, the results of reading, planning,
// explaining, judging and moving are compared with counting. A failing problem is simplified and printed as a command
// that repeats it.
#include <algorithm>
#include <chrono>
#include <iostream>

#include <fmt/format.h>

#include "meaning/asked.hpp"
#include "meaning/watch.hpp"
#include "support/property.hpp"

namespace reshard::test {
namespace {

constexpr std::uint64_t shares = 4;  // parts of the problems, which may run side by side
constexpr int failures_max = 10;

std::uint64_t questions() {
#ifdef __SANITIZE_ADDRESS__
    return 4000;
#else
    return long_run() ? 1'000'000 : 20'000;
#endif
}

std::string objection_to(const Draft& draft, Tally& tally) {
    watch(command_line(question_of(draft)));
    std::string wrong = objection(draft, tally);
    watch_nothing();
    return wrong;
}

/// Takes the first simpler draft that also fails, again and again.
Draft simplest(Draft draft, std::string& wrong) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::seconds(20);
    for (bool found = true; found && Clock::now() < end;) {
        found = false;
        for (const Draft& less : simpler(draft)) {
            Tally unused;
            const std::string also = objection_to(less, unused);
            if (also.empty()) continue;
            draft = less;
            wrong = also;
            found = true;
            break;
        }
    }
    return draft;
}

bool expect_right(std::uint64_t number, Tally& tally) {
    const Draft draft = draw(number);
    std::string wrong = objection_to(draft, tally);
    if (wrong.empty()) return true;
    const std::string first = wrong;
    const Draft simple = simplest(draft, wrong);
    ADD_FAILURE() << wrong << "\nrepeat it:  " << command_line(question_of(simple)) << "\nas it was drawn: " << first
                  << "\n  " << command_line(question_of(draft)) << "\n  RESHARD_QUESTION=" << number << " "
                  << ::testing::internal::GetArgvs()[0] << " --gtest_filter=Meaning.OfOneQuestion\n";
    return false;
}

class MeaningOf : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(MeaningOf, EveryQuestionIsWhatIsAnswered) {
    const std::uint64_t seed = drawn_seed();
    Tally tally;
    int failures = 0;
    for (std::uint64_t i = GetParam(); i < questions() && failures < failures_max; i += shares)
        if (!expect_right(seed + i, tally)) ++failures;
    std::cout << fmt::format(
        "{} questions from {} on: {} planned, {} refused; {} across meshes, {} uneven, {} with sums, {} in other "
        "notations; "
        "{} against the exact reference, {} of them complete; the slowest took {:.3f} s: {}\n",
        tally.questions, seed, tally.planned, tally.refused, tally.across, tally.uneven, tally.reduced, tally.foreign,
        tally.referenced, tally.complete, tally.seconds, tally.slowest);
    for (const Index met : {tally.refused, tally.across, tally.uneven, tally.reduced, tally.foreign, tally.referenced})
        EXPECT_GT(100 * met, tally.questions) << "a kind of question is rare";
    EXPECT_GT(4 * tally.planned, 3 * tally.questions);
    EXPECT_GT(3 * tally.complete, tally.referenced);
    EXPECT_GT(3 * tally.sums_at_bound, tally.bounded_sums);
}

INSTANTIATE_TEST_SUITE_P(Share, MeaningOf, ::testing::Range<std::uint64_t>(0, shares));

TEST(Meaning, OfOneQuestion) {
    const char* const number = std::getenv("RESHARD_QUESTION");
    if (number == nullptr) GTEST_SKIP() << "RESHARD_QUESTION=number asks one question again";
    Tally tally;
    std::cout << command_line(question_of(draw(std::stoull(number)))) << "\n";
    EXPECT_TRUE(expect_right(std::stoull(number), tally));
}

}  // namespace
}  // namespace reshard::test
