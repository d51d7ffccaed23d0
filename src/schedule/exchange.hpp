// The transfers of an exchange on one rank. Unlike schedule() they ask for no typed step: its typing rule counts what
// moves, which may take as long as there are devices.
#pragma once

#include "reshard/planner/schedule.hpp"

namespace reshard {

/// What the rank gets: every source tile that its target tile touches, from the holder whose turn it is; local copies
/// have peer == rank. pre: valid layouts of one array, with as many summands.
[[nodiscard]] std::vector<Transfer> exchange_receives(const Layout& before, const Layout& after, Index rank,
                                                      const Network& network = {});

/// What the rank gives to others: ascending peers, as far as it is this holder's turn. pre: as exchange_receives.
[[nodiscard]] std::vector<Transfer> exchange_sends(const Layout& before, const Layout& after, Index rank,
                                                   const Network& network = {});

}  // namespace reshard
