// The hashes of this library. They do not resist forgers.
#pragma once

#include <cstdint>
#include <string_view>

#include "reshard/planner/integer.hpp"

namespace reshard {

/// FNV-1a. Fingerprints of plans and journals of conversions contain its values, so they may not change.
class Hash {
public:
    constexpr void add(std::string_view bytes) {
        for (const char byte : bytes) state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    /// Adds the eight bytes of a word, the lowest first.
    constexpr void add(Index word) {
        for (unsigned shift = 0; shift < 64; shift += 8)
            state_ = (state_ ^ (static_cast<std::uint64_t>(word) >> shift & 0xffU)) * 0x100000001b3U;
    }
    [[nodiscard]] constexpr std::uint64_t value() const { return state_; }

private:
    std::uint64_t state_ = 0xcbf29ce484222325U;
};

/// Mixes a word so that every input bit reaches every output bit (the finalizer of SplitMix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

/// A hash and one more word. The order of the words counts, and sums of such hashes hardly ever cancel.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) { return mixed(hash ^ word); }

/// Adds a word to a hash, with one multiplication. Fingerprints that users see contain its values, so they may not
/// change.
constexpr void mix(std::uint64_t& hash, std::uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15U + (hash >> 29);
}

}  // namespace reshard
