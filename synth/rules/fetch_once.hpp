// Where the target replicates inside a node, each element crosses into the node once and is shared there.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// The dimension of `layout` to shard by one more atom, of those whose tile side it splits evenly: the one that it
/// shards in `source`, where its pieces are already apart; else the one with the largest side.
[[nodiscard]] std::optional<std::size_t> place_for(const Layout& layout, const Layout& source, Atom atom);

/// `target` sharded further by the axes of stride below `inside` on which it replicates, as far as place_for
/// has a place for them.
[[nodiscard]] Layout scattered(const Layout& target, const Layout& source, Index inside);

/// Moves the array to its target sharded further by replicated axes of stride below `inside` (devices of a node), then
/// gathers those: what the slow network carries shrinks by as much (theorem group_lower_bound says how far that can
/// go). The first part is one exchange, or with Vocabulary::collectives a three_stage. nullopt when the target
/// replicates over no such axis that its tiles can be split by.
[[nodiscard]] std::optional<Plan> fetch_once(const Problem& problem, Vocabulary vocabulary, Index inside);

}  // namespace reshard
