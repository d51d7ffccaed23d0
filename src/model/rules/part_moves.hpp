// The moves that a part of a target becomes.
#pragma once

#include "src/model/rules/shared_blocks.hpp"
#include "src/model/rules/taken_part.hpp"

namespace reshard::notation {

/// The place of a part in a target.
struct PartPlace {
    std::optional<Interval> stack;  ///< its place in a stack
    std::size_t stack_dim = 0;      ///< the dimension of the target that the stack adds
    std::size_t along = 0;          ///< the dimension of the part in which parts follow each other
    Index begin = 0;                ///< in that dimension, or in a group
    Index copies = 1;               ///< how often each head stands in the target
    Index head = 0;                 ///< indices of a head, if there are copies
    Index groups = 1;               ///< each has its share of the part
    Index group = 0;                ///< indices of a group, if there are groups
    bool whole = false;             ///< the part is the whole target
};

/// A tensor at one end of a move: its layout, and its own shape.
struct MoveEnd {
    std::shared_ptr<const Layout> layout;
    std::vector<Index> shape = {};     ///< as the layout has it
    std::vector<Stretches> held = {};  ///< as ShardedTensor::held. A source has each index once
};

/// Returns the moves of a part: one, one for each copy of each head, or one for each stretch of equal windows. A move
/// of several windows sees its tensors in more dimensions (in_parts). If a layout has no such view, each window is a
/// move. Errors, without a place: mismatch (windows that do not fit heads or groups); unsupported (more than 2^12
/// moves).
[[nodiscard]] Result<std::vector<PartProblem>> moves_of(const Taken& part, const MoveEnd& source, const MoveEnd& target,
                                                        const PartPlace& place);

}  // namespace reshard::notation
