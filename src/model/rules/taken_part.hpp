// The parts of source tensors that the lines of a target take.
#pragma once

#include "reshard/model/rules.hpp"
#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

/// Indices of a dimension: `count` windows of `width` indices. Each begins `period` after the one before it.
struct Windows {
    Index begin = 0;
    Index width = 0;
    Index period = 0;
    Index count = 1;
    [[nodiscard]] Index size() const { return width * count; }
    friend bool operator==(const Windows&, const Windows&) = default;
};

/// Consecutive indices are one window.
[[nodiscard]] inline Windows one_window(Interval side) { return {side.begin, side.size(), side.size(), 1}; }

/// The part of a source tensor that a line takes.
struct Taken {
    std::size_t tensor = 0;
    std::optional<std::vector<Windows>> sides;  ///< for each dimension of the tensor or its view; empty: all of it
    std::vector<Index> shape;                   ///< without the dimensions of indices, in the part's order
    std::vector<std::size_t> kept;              ///< the tensor's dimension for each dimension of `shape`
    std::size_t rule = 0;
    std::vector<Index> view = {};  ///< the shape that the part sees; empty: the tensor's own
};

/// The whole of a tensor, for a line of the target.
[[nodiscard]] Taken whole_of(std::size_t tensor, const ListedTensor& listed, std::size_t rule);

/// The slices of a tensor that a part names, in the part's shape and order of dimensions. Errors, without a place:
/// mismatch; unsupported (more than 2^24 windows in a dimension).
[[nodiscard]] Result<Taken> sliced(std::size_t tensor, const ListedTensor& listed, std::size_t rule,
                                   const RulePart& part, const Bindings& names);

/// Tells whether two parts of one tensor share an element. `shape` is the tensor's. Parts in two shapes are compared
/// run by run. True if both have more than 2^20 runs.
[[nodiscard]] bool overlap(const Taken& a, const Taken& b, std::span<const Index> shape);

}  // namespace reshard::notation
