#include "reshard/result.hpp"

#include <gtest/gtest.h>

#include <set>

namespace reshard {
namespace {

TEST(ResultUnit, EveryCodeHasItsOwnName) {
    std::set<std::string> names;
    for (int i = 0; i <= static_cast<int>(Code::backend); ++i) names.emplace(name(static_cast<Code>(i)));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::backend) + 1);
    EXPECT_TRUE(names.contains("infeasible"));
    EXPECT_FALSE(names.contains(""));
}

TEST(ResultUnit, AnErrorWithTextPutsACaretUnderThePlace) {
    const Error error{Code::syntax, "no axis q", "f32[4@q]", 6};
    const std::string text = describe(error);
    const auto first = text.find('\n');
    const auto second = text.find('\n', first + 1);
    ASSERT_NE(second, std::string::npos);
    EXPECT_NE(text.substr(0, first).find("no axis q"), std::string::npos);
    const std::string shown = text.substr(first + 1, second - first - 1);
    const std::string caret = text.substr(second + 1);
    ASSERT_NE(caret.find('^'), std::string::npos);
    EXPECT_EQ(shown.at(caret.find('^')), 'q');
}

TEST(ResultUnit, AnErrorWithoutTextIsOneLine) {
    EXPECT_EQ(describe({Code::mesh, "two axes named x"}).find('^'), std::string::npos);
    EXPECT_NE(describe({Code::mesh, "two axes named x"}).find("two axes named x"), std::string::npos);
}

TEST(ResultUnit, FailMakesAnErrorOfAnyResult) {
    const Result<int> result = fail(Code::io, "gone");
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, Code::io);
    EXPECT_EQ(result.error().message, "gone");
}

}  // namespace
}  // namespace reshard
