// The transfers of an exchange on one rank. Unlike schedule() they need no typed step. The typing rule counts the moved
// elements, and its time may grow with the number of devices.
#pragma once

#include <span>

#include "reshard/planner/schedule.hpp"

namespace reshard {

/// Returns the rank's receives: every source tile that its target tile touches, from the holder whose turn it is. Local
/// copies have peer == rank. Devices in `lost`, ascending, hold nothing before. pre: valid layouts of one array with
/// equal numbers of summands; every tile that the rank wants has a holder that is not lost.
[[nodiscard]] std::vector<Transfer> exchange_receives(const Layout& before, const Layout& after, Index rank,
                                                      const Network& network = {}, std::span<const Index> lost = {});

/// Returns the rank's sends to others, by ascending peer, if it is this holder's turn. pre: as exchange_receives.
[[nodiscard]] std::vector<Transfer> exchange_sends(const Layout& before, const Layout& after, Index rank,
                                                   const Network& network = {}, std::span<const Index> lost = {});

/// A part of a tile that moves to or from a peer; this rank for a local copy. The part is a product of sides, in global
/// indices, so a cyclic part is one however many boxes it has.
struct PartTransfer {
    Index peer = 0;
    Tile part;
};

/// The same as exchange_receives and exchange_sends, by parts.
[[nodiscard]] std::vector<PartTransfer> exchange_received_parts(const Layout& before, const Layout& after, Index rank,
                                                                const Network& network = {},
                                                                std::span<const Index> lost = {});
[[nodiscard]] std::vector<PartTransfer> exchange_sent_parts(const Layout& before, const Layout& after, Index rank,
                                                            const Network& network = {},
                                                            std::span<const Index> lost = {});

}  // namespace reshard
