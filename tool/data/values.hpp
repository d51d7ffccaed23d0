// The elements of the array, known to every rank without communication: a function of the index, or the input file.
// Sources are filled from it and targets are compared with it.
#pragma once

#include <memory>

#include "tool/files/array_file.hpp"

namespace reshard::cli {

class Values {
public:
    virtual ~Values() = default;

    /// What a device whose summand is `summand` holds of the box, dense. Boxes in storage order. Errors: io.
    [[nodiscard]] virtual Result<void> part(const Box& box, Index summand, std::span<std::byte> into) = 0;

    /// The array itself: what the summands combine to.
    [[nodiscard]] virtual Result<void> total(const Box& box, std::span<std::byte> into) = 0;
};

/// A deterministic hash of the global index: all bits of the elements, or, when `reduced` says that either end has
/// summands, small whole numbers that differ from summand to summand. Other arrays have other numbers.
[[nodiscard]] std::unique_ptr<Values> generated(const Layout& source, bool reduced, std::uint64_t array = 0);

/// The elements of a file; summand 0 holds them, the others hold the neutral element, so that every bit stays.
/// pre: not an avg, nor a prod of complex numbers, which may round.
[[nodiscard]] std::unique_ptr<Values> from_file(ArrayFile file, Reduction reduction);

/// Mixes a 64-bit number so that every input bit reaches every output bit (SplitMix64's finalizer).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

}  // namespace reshard::cli
