// Candidates where the search has no common digits to search over: source and target list their devices in different
// orders or are on different devices, or a dimension is cut in pieces.
#pragma once

#include <optional>

#include "reshard/problem.hpp"

namespace reshard {

/// True when every layout on the way can be written in the digits of one mesh, without pieces.
[[nodiscard]] bool searchable(const Problem& problem);

// Plans of a problem that is not searchable, besides its one-step plans; the judge decides which are right. nullopt
// where nothing moves, or a rule has no plan.

/// Sums are reduced at the source, where they lie; then one exchange; then zero_fill.
[[nodiscard]] std::optional<Plan> reduce_first(const Problem& problem, const Machine& machine = laptop());
/// The exchange brings each element once to a target that is scattered further over the axes on which it replicates,
/// and a gather inside the target's mesh spreads it.
[[nodiscard]] std::optional<Plan> scatter_then_gather(const Problem& problem, const Machine& machine = laptop());
/// The same, scattered over what replicates within a level of the machine only, and gathered level by level, the
/// outermost first: an element enters a block of that level once, or is forwarded between its blocks.
[[nodiscard]] std::optional<Plan> fetch_once_between(const Problem& problem, const Machine& machine, std::size_t level);
/// Summands are carried to tiles of the target without its summand axes, and reduced there.
[[nodiscard]] std::optional<Plan> reduce_last(const Problem& problem);
/// Dimensions that are cut differently are gathered as far as they differ, then sliced.
[[nodiscard]] std::optional<Plan> gather_differing(const Problem& problem);

/// The problem of the rule `even_blocks`: dimensions cut in pieces are cut by the same axes into even blocks. nullopt
/// where there are no pieces, or the devices have different orders.
[[nodiscard]] std::optional<Problem> in_even_blocks(const Problem& problem);
/// The plan of `problem`, given the steps that solve that one: an exchange leads from the pieces of an end to its
/// blocks.
[[nodiscard]] Plan between_pieces(const Problem& problem, const Problem& blocks, std::vector<Step> steps);

/// The problem of the rule `reorder`: the target's layout is made in the source's order of devices, then whole tiles
/// are permuted. nullopt where both orders are the same or the devices differ.
[[nodiscard]] std::optional<Problem> in_the_order_of_the_source(const Problem& problem);
/// The plan of `problem`, given the steps that solve that one.
[[nodiscard]] Plan reordered(const Problem& problem, std::vector<Step> steps);

}  // namespace reshard
