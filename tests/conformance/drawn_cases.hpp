// Random cases of a property on a backend: the same ones on all ranks, each with a seed that repeats it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/harness.hpp"
#include "reshard/backends/run.hpp"
#include "support/property.hpp"
#include "support/random_bytes.hpp"

namespace reshard::conformance {

/// --cases=N. The default is for ranks in one process: 200 over their four numbers of ranks, and 10,000 in a long run.
[[nodiscard]] inline int case_count() {
    constexpr std::string_view option = "--cases=";
    for (const std::string& argument : testing::internal::GetArgvs())
        if (argument.starts_with(option)) return test::cases(std::stoi(argument.substr(option.size())));
    return test::long_run() ? 2500 : 50;
}

template <class Case>
struct DrawnCases {
    std::uint64_t seed = 0;  ///< of the first case; each later case has the next number
    std::vector<Case> all;
};

/// `draw(random)` makes one case.
template <class Draw>
auto draw_cases(const Draw& draw) {
    DrawnCases<std::invoke_result_t<Draw, test::Random&>> cases;
    // A long run draws a seed, and processes would draw different ones.
    cases.seed = std::stoull(harness().from_rank_0([] { return std::to_string(test::drawn_seed()); }));
    for (int i = 0; i < case_count(); ++i) {
        test::Random random(cases.seed + static_cast<std::uint64_t>(i));
        cases.all.push_back(draw(random));
    }
    return cases;
}

/// Runs `expect(backend, case)` on all ranks, case by case, until one fails. `describe(case)` is printed with a
/// failure.
template <class Case, class Expect>
void expect_each(const DrawnCases<Case>& cases, const Expect& expect) {
    harness().on_every_rank([&](Backend& backend) {
        for (std::size_t i = 0; i < cases.all.size(); ++i) {
            SCOPED_TRACE(fmt::format("RESHARD_SEED={}\n{}", cases.seed + i, describe(cases.all[i])));
            expect(backend, cases.all[i]);
            if (testing::Test::HasFailure()) return;
        }
    });
}

/// Runs twice. Each field prepares its memory before a run and knows the right contents after it. `in_flight` is called
/// before each run is waited for.
template <class Field>
void expect_two_runs(
    Bound& bound, std::vector<Field>& fields, Index rank, const std::function<void()>& in_flight = [] {}) {
    for (Index run = 0; run < 2; ++run) {
        for (Field& field : fields) field.prepare(run);
        auto ticket = bound.start();
        ASSERT_TRUE(ticket) << ticket.error().message;
        in_flight();
        const auto done = (*ticket)->wait();
        ASSERT_TRUE(done) << done.error().message;
        for (std::size_t i = 0; i < fields.size(); ++i)
            EXPECT_TRUE(fields[i].is_right()) << "run " << run << ", array " << i << ", rank " << rank;
    }
}

}  // namespace reshard::conformance
