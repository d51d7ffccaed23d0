// A sharding as the search sees it: for each dimension, and last for the unreduced axes, numbers of digits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace reshard {

/// Up to 7 digit numbers below 15, major to minor, in one word: four bits each from the lowest, the count on top.
class List {
public:
    [[nodiscard]] constexpr std::size_t size() const { return word_ >> 28; }
    [[nodiscard]] constexpr bool empty() const { return word_ == 0; }
    [[nodiscard]] constexpr std::uint8_t operator[](std::size_t at) const {
        return static_cast<std::uint8_t>(word_ >> 4 * at & 15);
    }
    [[nodiscard]] constexpr std::uint8_t back() const { return (*this)[size() - 1]; }
    constexpr void push(std::uint8_t digit) {
        word_ = (word_ | static_cast<std::uint32_t>(digit) << 4 * size()) + (1u << 28);
    }
    constexpr void pop() { word_ = (word_ & ((1u << 4 * (size() - 1)) - 1)) | ((word_ >> 28) - 1) << 28; }
    constexpr void set(std::size_t at, std::uint8_t digit) {
        word_ = (word_ & ~(15u << 4 * at)) | static_cast<std::uint32_t>(digit) << 4 * at;
    }
    /// One leads the other.
    [[nodiscard]] constexpr bool comparable(List other) const {
        const std::size_t both = size() < other.size() ? size() : other.size();
        return ((word_ ^ other.word_) & ((1u << 4 * both) - 1)) == 0;
    }
    /// The number of digits that lead both.
    [[nodiscard]] constexpr std::size_t common(List other) const {
        const std::size_t both = size() < other.size() ? size() : other.size();
        const auto same = static_cast<std::size_t>(std::countr_zero(word_ ^ other.word_)) / 4;
        return same < both ? same : both;
    }
    [[nodiscard]] constexpr std::uint32_t word() const { return word_; }
    friend constexpr bool operator==(List, List) = default;

private:
    std::uint32_t word_ = 0;
};

/// The most lists of a state.
inline constexpr std::size_t lists_max = 12;
inline constexpr std::size_t pieces_max = 15;
inline constexpr std::size_t digits_max = 7;

struct State {
    std::array<List, lists_max> lists{};
    friend bool operator==(const State&, const State&) = default;

    /// All lists in one number: five bits a digit, the first of them 1, and a 0 after each list. pre: coded(digits,
    /// count).
    [[nodiscard]] std::uint64_t code(std::size_t count) const {
        std::uint64_t word = 1;
        for (std::size_t i = 0; i < count; ++i) {
            for (std::size_t j = 0; j < lists[i].size(); ++j) word = word << 5 | 16u | lists[i][j];
            word <<= 1;
        }
        return word;
    }
    /// True if `code` tells all states of `count` lists with so many digits apart.
    [[nodiscard]] static constexpr bool coded(std::size_t digits, std::size_t count) { return 5 * digits + count < 64; }
};

}  // namespace reshard
