// A fill as rounds. Each round is an exchange between owners and the cells that it brings.
#pragma once

#include "reshard/halo/plan.hpp"
#include "src/schedule/wanted.hpp"

namespace reshard {

/// The cells that a round brings.
struct HaloRound {
    std::vector<Halo> halos;     ///< of this round alone, one per dimension
    std::vector<char> complete;  ///< per dimension; 1: earlier rounds brought its halo, which this round carries too
};

/// The owners of the elements that a move reads.
[[nodiscard]] inline const Layout& owners_of(const HaloMove& move) {
    return move.source ? *move.source : move.target.owned;
}

/// The cells that devices want in a round. It refers to both arguments.
[[nodiscard]] inline HaloView wanted_in(const HaloMove& move, const HaloRound& round) {
    return {move.target.owned, round.halos};
}

/// Fails unless the move is valid. Errors: as price_halo.
[[nodiscard]] Result<void> validate(const HaloMove& move, HaloWay way);

/// The rounds of a valid move; by_dimension has one for each dimension with a halo.
[[nodiscard]] std::vector<HaloRound> rounds_of(const HaloMove& move, HaloWay way);

/// Visits the rank's receives in a round with this wrap. Boxes are in cells. Copies of elements that the rank owns have
/// peer == rank, except the block itself of a fill in place.
void each_receive(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap,
                  const TransferVisit& visit);
/// Visits the rank's sends to others: the other side of each_receive, in the same order for each pair of ranks.
void each_send(const HaloMove& move, const HaloRound& round, Index rank, const Wrap& wrap, const TransferVisit& visit);

/// The same as lists.
[[nodiscard]] std::vector<Transfer> round_receives(const HaloMove& move, const HaloRound& round, Index rank,
                                                   const Wrap& wrap);
[[nodiscard]] std::vector<Transfer> round_sends(const HaloMove& move, const HaloRound& round, Index rank,
                                                const Wrap& wrap);

}  // namespace reshard
