// The elements of the array, known to every rank without communication: a function of the index, or the input file.
// Sources are filled from it and targets are compared with it.
#pragma once

#include <memory>

#include "src/base/hash.hpp"
#include "src/copy/box_runs.hpp"
#include "tool/data/array_file.hpp"

namespace reshard::cli {

inline std::size_t unsigned_of(Index value) { return static_cast<std::size_t>(value); }

class Values {
public:
    virtual ~Values() = default;

    /// Writes the elements of the box on a device with this summand, dense. Boxes are in storage order. Errors: io.
    [[nodiscard]] virtual Result<void> part(const Box& box, Index summand, std::span<std::byte> into) = 0;

    /// Writes the array's own elements: the combination of all summands.
    [[nodiscard]] virtual Result<void> total(const Box& box, std::span<std::byte> into) = 0;
};

/// Values that are a deterministic hash of the global index. They are random bits, or, if `reduced` (an end has
/// summands), small whole numbers that differ between summands. Other arrays have other numbers.
[[nodiscard]] std::unique_ptr<Values> generated(const Layout& source, bool reduced, std::uint64_t array = 0);

/// The elements of a file. Summand 0 holds them, the others hold the neutral element, so every bit stays. pre: not an
/// avg, nor a prod of complex numbers, which may round.
[[nodiscard]] std::unique_ptr<Values> from_file(ArrayFile file, Reduction reduction);

/// Calls visit(number of the first element in the array, number of it in the dense box, elements) for the longest runs
/// that lie in one piece in both. pre: `box` is inside `whole`.
template <class Visit>
[[nodiscard]] Result<void> for_each_run(const Box& whole, const Box& box, const Visit& visit) {
    return reshard::for_each_run(within(packed_region(whole, 1), whole, box), packed_region(box, 1), visit);
}

}  // namespace reshard::cli
