#include "src/base/hash.hpp"

#include <gtest/gtest.h>

#include "src/base/odometer.hpp"

namespace reshard {
namespace {

std::uint64_t hash_of(std::string_view text) {
    Hash hash;
    hash.add(text);
    return hash.value();
}

TEST(Hash, IsFnv1aOfBytes) {  // the values of its authors' test suite
    EXPECT_EQ(hash_of(""), 0xcbf29ce484222325U);
    EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cU);
    EXPECT_EQ(hash_of("foobar"), 0x85944171f73967e8U);
    Hash words;
    words.add(Index{0x0807060504030201});
    EXPECT_EQ(words.value(), hash_of("\x01\x02\x03\x04\x05\x06\x07\x08"));
}

TEST(Hash, MixedIsSplitMix64) {
    EXPECT_EQ(mixed(0), 0xe220a8397b1dcdafU);  // its first number from seed 0
    EXPECT_NE(mixed(mixed(1, 2), 3), mixed(mixed(1, 3), 2));
}

TEST(Odometer, WalksRowMajorAndStopsAtAnError) {
    std::vector<Index> seen;
    const auto walk = [&](std::vector<Index> counts, Index stop) {
        seen.clear();
        return for_each_place(counts, [&](const std::vector<Index>& place) -> Result<void> {
            Index number = 0;
            for (const Index digit : place) number = 10 * number + digit;
            seen.push_back(number);
            return number == stop ? Result<void>(fail(Code::io, "stop")) : Result<void>();
        });
    };
    EXPECT_TRUE(walk({2, 1, 3}, -1));
    EXPECT_EQ(seen, (std::vector<Index>{0, 1, 2, 100, 101, 102}));
    EXPECT_FALSE(walk({2, 1, 3}, 100));
    EXPECT_EQ(seen.size(), 4U);
    EXPECT_TRUE(walk({}, -1));
    EXPECT_EQ(seen, std::vector<Index>{0});
    EXPECT_TRUE(walk({3, 0}, -1));
    EXPECT_TRUE(seen.empty());
}

}  // namespace
}  // namespace reshard
