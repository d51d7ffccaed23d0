// Parts of fused tensors, storages of the caller's, reshapes, lists; and what is refused.
#include <gtest/gtest.h>

#include "reshard/text.hpp"
#include "rows/memory.hpp"

namespace reshard::test {
namespace {

const Mesh mesh{{"x", 2}, {"y", 2}};

Layout layout(const char* text) { return *parse_layout(mesh, text); }

TEST(RowParts, ASumIsRefused) {
    const auto rows = schedule_rows(layout("f32[8]{U:x}"), layout("f32[8@x]"), 0);
    ASSERT_FALSE(rows);
    EXPECT_EQ(rows.error().code, Code::unsupported);
    EXPECT_EQ(rows.error().message, "rows copy bytes, and an array in 2 summands (sum) must be reduced first");
}

}  // namespace
}  // namespace reshard::test
