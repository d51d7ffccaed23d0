// The rule that picks the sender if several devices hold the same elements. All ranks and the price must agree on it.
#pragma once

#include <utility>
#include <vector>

#include "reshard/layout.hpp"
#include "reshard/planner/network.hpp"

namespace reshard {

/// True if the blocks of each size group the devices that agree in some digits of the mesh and of both layouts.
[[nodiscard]] bool blocks_are_digits(const Layout& before, const Layout& after, const Network& network);

/// The digits that divide the devices of an exchange or a permute into teams, each of which serves itself. These are
/// the digits that neither end uses (idle_atoms). There are none between two device orders. There are none either if
/// the network's blocks cut a digit of the mesh, or if the mesh lists its devices, since the nearest holder may be in
/// another team.
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
