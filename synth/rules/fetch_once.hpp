// If the target replicates inside a node, each element enters the node once and is shared there.
#pragma once

#include "reshard/problem.hpp"

namespace reshard {

/// The dimension of `layout` to shard by one more atom, of those whose tile side it splits evenly: the one that it
/// shards in `source`, where its pieces are already apart; else the one with the largest side.
[[nodiscard]] std::optional<std::size_t> place_for(const Layout& layout, const Layout& source, Atom atom);

/// Atoms in primes by the level of the machine at which devices are apart that differ in them.
[[nodiscard]] std::vector<AtomList> by_levels(const Layout& layout, const AtomList& atoms, const Machine& machine);

/// The atoms over which a layout replicates.
[[nodiscard]] AtomList replicated(const Layout& layout);

/// `layout` sharded further by these primes, one after the other, as far as place_for has a place for them; where it
/// has none, the longest side takes uneven shares.
[[nodiscard]] Layout scattered(Layout layout, const Layout& source, const AtomList& primes);

/// `target` sharded further by its replicated axes, level by level up to `level`. The first layout is the target, the
/// last one has the most shards. Outer levels are minor, so they are gathered first, while tiles are small. A layout
/// that equals the one before is left out.
[[nodiscard]] std::vector<Layout> scattered_by_levels(const Layout& target, const Layout& source,
                                                      const Machine& machine, std::size_t level);

/// The steps that undo it, from the last layout on.
void gather_by_levels(std::vector<Step>& steps, const std::vector<Layout>& layouts);

/// Moves the array to its target sharded further by replicated axes within a level of the machine, then gathers those,
/// the outermost level first: what each level carries shrinks by as much (theorem group_lower_bound says how far that
/// can go). The first part is one exchange, or with Vocabulary::collectives a three_stage. nullopt when the target
/// replicates over no such axis that its tiles can be split by. pre: both ends in one order of devices.
[[nodiscard]] std::optional<Plan> fetch_once(const Problem& problem, Vocabulary vocabulary, const Machine& machine,
                                             std::size_t level);

}  // namespace reshard
