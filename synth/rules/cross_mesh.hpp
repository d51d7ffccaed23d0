// Candidates for problems without common digits to search over: source and target are on different devices, or list
// them in different orders, or a dimension is cut in pieces.
#pragma once

#include <optional>

#include "reshard/problem.hpp"

namespace reshard {

/// True if every layout on the way can be written in the digits of one mesh, without pieces.
[[nodiscard]] bool searchable(const Problem& problem);

// Plans of a problem that is not searchable, besides its one-step plans. The judge decides which are right. nullopt
// if nothing moves, or if a rule has no plan.

/// Sums are reduced at the source, where they lie; then one exchange; then zero_fill.
[[nodiscard]] std::optional<Plan> reduce_first(const Problem& problem, const Machine& machine = laptop());
/// The target is scattered further over its replicated axes, an exchange brings each element there once, and a gather
/// inside the target's mesh spreads it.
[[nodiscard]] std::optional<Plan> scatter_then_gather(const Problem& problem, const Machine& machine = laptop());
/// The same, scattered only over axes that replicate within a level of the machine, and gathered level by level, the
/// outermost first. An element enters a block of that level once, or is forwarded between its blocks.
[[nodiscard]] std::optional<Plan> fetch_once_between(const Problem& problem, const Machine& machine, std::size_t level);
/// An exchange carries summands to tiles of the target without its summand axes, and a reduction follows there.
[[nodiscard]] std::optional<Plan> reduce_last(const Problem& problem);
/// Dimensions with different cuts are gathered as far as they differ, then sliced.
[[nodiscard]] std::optional<Plan> gather_differing(const Problem& problem);

/// The problem of the rule `even_blocks`: the same axes cut dimensions into even blocks instead of pieces. nullopt if
/// no dimension has pieces, or if the devices have different orders.
[[nodiscard]] std::optional<Problem> in_even_blocks(const Problem& problem);
/// The plan of `problem` from the steps that solve `blocks`, with an exchange between the pieces and the blocks of an
/// end.
[[nodiscard]] Plan between_pieces(const Problem& problem, const Problem& blocks, std::vector<Step> steps);

/// The problem of the rule `reorder`: the target's layout in the source's order of devices. Whole tiles are permuted
/// afterwards. nullopt if both orders are the same or the devices differ.
[[nodiscard]] std::optional<Problem> in_the_order_of_the_source(const Problem& problem);
/// The plan of `problem` from the steps that solve the reordered problem.
[[nodiscard]] Plan reordered(const Problem& problem, std::vector<Step> steps);

}  // namespace reshard
