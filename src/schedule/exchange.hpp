// The transfers of an exchange on one rank. Unlike schedule() they need no typed step. The typing rule counts the moved
// elements, and its time may grow with the number of devices.
#pragma once

#include "reshard/planner/schedule.hpp"

namespace reshard {

/// Returns the rank's receives: every source tile that its target tile touches, from the holder whose turn it is. Local
/// copies have peer == rank. pre: valid layouts of one array with equal numbers of summands.
[[nodiscard]] std::vector<Transfer> exchange_receives(const Layout& before, const Layout& after, Index rank,
                                                      const Network& network = {});

/// Returns the rank's sends to others, by ascending peer, if it is this holder's turn. pre: as exchange_receives.
[[nodiscard]] std::vector<Transfer> exchange_sends(const Layout& before, const Layout& after, Index rank,
                                                   const Network& network = {});

}  // namespace reshard
