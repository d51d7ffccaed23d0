// An exchange as boxes: what ranks own, want, send and receive. The checker that is extracted from the proofs reads it,
// for halos and for boxes that ranks name (proofs/Boxes.v).
#pragma once

#include <string>

#include "reshard/planner/schedule.hpp"

namespace reshard {

/// The boxes of one rank, without empty ones. Wanted boxes have cells from 0 on: cell c holds element c modulo the
/// extents. All other boxes have elements. Sends and receives are between two ranks, in the order of travel.
struct MemberBoxes {
    std::vector<Box> owns;
    std::vector<Box> wants;
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
};

struct OwnedBoxes {
    std::vector<Index> shape;  ///< global extents
    bool copies = false;       ///< several ranks may own one box
    bool partial = false;      ///< an element that nobody wants may have no owner
    std::vector<MemberBoxes> ranks;
};

/// The checker judges at most so many ranks: it compares each with each.
inline constexpr Index certified_members_max = 256;

/// Fails with Code::unsupported if the checker does not judge so many ranks.
[[nodiscard]] Result<void> check_certified_ranks(Index ranks);

/// The exchange as one line for the checker, without the newline. Errors: unsupported (more ranks or larger numbers
/// than the checker counts).
[[nodiscard]] Result<std::string> certificate(const OwnedBoxes& boxes);

}  // namespace reshard
