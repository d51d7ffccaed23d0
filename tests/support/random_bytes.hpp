// Drawn bytes and numbers for tests of copies and digests, and a comparison of bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard::test {

using Random = std::mt19937_64;
using Bytes = std::vector<std::byte>;

inline Index below(Random& random, Index bound) {
    return static_cast<Index>(random() % static_cast<std::uint64_t>(bound));
}

inline Bytes random_bytes(Random& random, Index bytes) {
    Bytes made(static_cast<std::size_t>(bytes));
    for (std::byte& byte : made) byte = static_cast<std::byte>(random());
    return made;
}

/// By memcmp, which is fast in builds without optimization, too.
[[nodiscard]] inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

}  // namespace reshard::test
