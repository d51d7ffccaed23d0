// The parts of source tensors that the lines of a target take, and the moves that they become.
#pragma once

#include "reshard/model/rules.hpp"
#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

/// The part of a source tensor that a line takes.
struct Taken {
    std::size_t tensor = 0;
    std::optional<Box> box;         ///< empty: all of it
    std::vector<Index> shape;       ///< without the dimensions of indices
    std::vector<std::size_t> kept;  ///< the tensor's dimension for each dimension of `shape`
    std::size_t rule = 0;
};

/// The whole of a tensor, for a line of the target.
[[nodiscard]] Taken whole_of(std::size_t tensor, const ListedTensor& listed, std::size_t rule);

/// The slices of a tensor that a part names. Errors, without a place: mismatch.
[[nodiscard]] Result<Taken> sliced(const Taken& whole, const ListedTensor& listed, const RulePart& part,
                                   const Bindings& names);

[[nodiscard]] bool overlap(const Taken& a, const Taken& b);

/// The place of a part in a target.
struct PartPlace {
    std::optional<Interval> stack;  ///< its place in a stack
    std::size_t along = 0;          ///< the dimension of the part in which parts follow each other
    Index begin = 0;                ///< in that dimension
    Index copies = 1;               ///< how often each head stands in the target
    Index head = 0;                 ///< indices of a head, if there are copies
};

/// Returns the moves of a part: one, or one for each copy of each head. `whole`: the part is the whole target, so its
/// move needs no box.
[[nodiscard]] std::vector<PartProblem> moves_of(const Taken& part, TensorPart source, TensorPart target,
                                                const PartPlace& place, bool whole);

}  // namespace reshard::notation
