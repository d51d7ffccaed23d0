// Who serves whom where several devices hold the same: the rule on which all ranks and the price must agree.
#pragma once

#include <utility>
#include <vector>

#include "reshard/layout.hpp"
#include "reshard/planner/network.hpp"

namespace reshard {

/// The digits that part the devices of an exchange or a permute into teams, of which each serves itself: those that
/// neither end uses (idle_atoms). None between two orders of devices; nor where the blocks of the network part a digit
/// of the mesh, or the mesh lists its devices: there the nearest holder may stand in another team.
[[nodiscard]] AtomList team_atoms(const Layout& before, const Layout& after, const Network& network);

/// A device that wants `elements` of a source tile which it does not hold; `offset` elements are wanted by those before
/// it.
struct Demand {
    Index device = 0;
    Index offset = 0;
    Index elements = 0;
};

/// The stripe rule: demands on one source tile, laid end to end in ascending order of the devices, are cut into equal
/// parts, one for each holder, so that no holder sends more than ceil(demand / holders).
struct Stripes {
    std::vector<Index> holders;   // ascending
    std::vector<Demand> demands;  // ascending
    Index part = 0;               // elements a holder serves

    /// The range of a demand's own elements (row-major in its piece) that the holder at `place` serves; empty as begin
    /// == end.
    [[nodiscard]] std::pair<Index, Index> served(const Demand& demand, std::size_t place) const;

    /// visit(place of a holder, begin, end) for each holder that serves some of the demand.
    template <class Visit>
    void serve(const Demand& demand, const Visit& visit) const {
        for (Index place = demand.offset / part; place * part < demand.offset + demand.elements; ++place) {
            const auto [begin, end] = served(demand, static_cast<std::size_t>(place));
            visit(static_cast<std::size_t>(place), begin, end);
        }
    }
};

/// The demands of a tile by the least blocks that have a holder: the holders in it share them, and no others. One group
/// where all devices are as near as any. pre: both ascending, no holder demands, at least one holder.
[[nodiscard]] std::vector<Stripes> stripes_of(const Network& network, std::vector<Index> holders,
                                              std::vector<Demand> demands);

/// Pairs devices one to one, the nearest first, then in ascending order; who is in both lists stays alone, and is its
/// own partner. pre: ascending, as many in each.
[[nodiscard]] std::vector<std::pair<Index, Index>> partners(const Network& network, const std::vector<Index>& holders,
                                                            const std::vector<Index>& wanting);

}  // namespace reshard
