// A random property as a GoogleTest case: counted, seeded, and repeatable by one line.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>

namespace reshard::test {

/// True in a long run, with the large totals.
[[nodiscard]] inline bool long_run() {
    const char* const asked = std::getenv("RESHARD_LONG");
    return asked != nullptr && std::string_view(asked) != "" && std::string_view(asked) != "0";
}

/// The seed of the random cases: RESHARD_SEED if it is set. Otherwise a short run always uses the same seed, and a long
/// run draws a new one.
[[nodiscard]] inline std::uint64_t drawn_seed() {
    if (const char* const given = std::getenv("RESHARD_SEED")) return std::strtoull(given, nullptr, 10);
    if (!long_run()) return 20211203;
    std::random_device device;
    return (std::uint64_t{device()} << 31) + device();
}

/// `cases` in a short run, five times as many in a long run. Under the sanitizers a quarter: they are ten times slower
/// and never the only run.
[[nodiscard]] inline int cases(int cases) {
#ifdef __SANITIZE_ADDRESS__
    return cases / 4;
#else
    return long_run() ? 5 * cases : cases;
#endif
}

/// Runs `testable` on `count` random cases. The seed is drawn_seed() unless RC_PARAMS gives one, so short runs repeat
/// exactly. A long run prints its seed, and a failure prints the line that repeats it.
template <class Testable>
void check_property(int count, Testable&& testable) {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    const std::string id = std::string(test->test_suite_name()) + "." + test->name();
    rc::detail::TestMetadata metadata;
    metadata.id = id;
    metadata.description = id;
    rc::detail::TestParams params = rc::detail::configuration().testParams;
    const char* const given = std::getenv("RC_PARAMS");
    if (given == nullptr || std::string_view(given).find("seed") == std::string_view::npos) params.seed = drawn_seed();
    if (long_run()) std::cout << "RC_PARAMS=seed=" << params.seed << std::endl;
    params.maxSuccess = count;
    // At the end RapidCheck's own listener prints the string that jumps straight to the shrunk case.
    const auto result =
        rc::detail::checkProperty(rc::detail::toProperty(std::forward<Testable>(testable)), metadata, params);
    if (result.template is<rc::detail::SuccessResult>()) {
        if (!result.template get<rc::detail::SuccessResult>().distribution.empty()) {
            rc::detail::printResultMessage(result, std::cout);
            std::cout << std::endl;
        }
        return;
    }
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    text << "\nrepeat it: RC_PARAMS=seed=" << params.seed << " " << ::testing::internal::GetArgvs()[0]
         << " --gtest_filter=" << id << "\n";
    FAIL() << text.str();
}

}  // namespace reshard::test
