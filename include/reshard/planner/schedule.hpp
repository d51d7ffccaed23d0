// From plan to messages: a step on one rank becomes sends, receives and fills of boxes. Code above this does not know
// MPI or CUDA; code below it does not know layouts.
#pragma once

#include "reshard/plan.hpp"
#include "reshard/planner/network.hpp"

namespace reshard {

/// The factor times / over.
struct Scale {
    Index times = 1;  ///< numerator
    Index over = 1;   ///< denominator
    friend bool operator==(const Scale&, const Scale&) = default;
};

/// A box that moves between this rank and `peer`, in global indices. In each dimension it lies within one interval of
/// the sender's source tile and within one interval of the receiver's target tile.
struct Transfer {
    Index peer = 0;  ///< the other rank; this rank for a local copy
    Box box;         ///< global indices
    friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// One step on one rank. Receives with peer == rank are local copies and have no send.
/// With Combine::copy every receive stores. With any other Combine the first receive that covers an element stores, and
/// later ones combine in the order of the list. This is the order of the summands, the same on every rank and run; only
/// a native all_reduce may take another order.
/// An avg is a sum and one factor: a reduction divides by the decrease of the divisor, a zero_fill multiplies by its
/// increase.
/// An all_reduce lists the contributors, not the traffic: a native collective receives 2T(g-1)/g for it.
/// Two ranks may exchange several boxes. The k-th send to a peer is that peer's k-th receive from this rank.
struct Schedule {
    StepKind kind = StepKind::exchange;  ///< kind of the step
    Index rank = 0;                      ///< whose schedule it is
    Tile source_tile;                    ///< the tile that the rank holds before the step
    Tile target_tile;                    ///< the tile that it holds after the step
    Combine combine = Combine::copy;     ///< how a receive combines with the elements in place
    std::vector<Transfer> sends;         ///< to other ranks
    std::vector<Transfer> receives;      ///< from other ranks, and local copies
    std::vector<Box> fills;              ///< boxes of the target tile that become the identity before the receives
    std::vector<Index> group;            ///< for a collective in equal blocks its ranks, in order; otherwise empty
    Combine identity = Combine::sum;     ///< its neutral element fills: 0, 1, lowest or highest
    Scale scale = {};                    ///< the factor for `scaled`
    std::vector<Box> scaled = {};        ///< boxes of the target tile to multiply once everything has arrived
    friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The schedule of `step` on `rank`. Ranks beyond the layout's devices get an empty schedule. A view has one tile,
/// written in the shape after it. The holders nearest on
/// the network share the work. If all are equally near, no device sends more than ceil(elements that others want of its
/// tile / holders of that tile) (the stripe rule). pre: the step is typed.
/// Cost: linear in the peers of the rank, not in the devices. An exchange with replicated sources is linear in the
/// devices that want the tile.
[[nodiscard]] Schedule schedule(const Layout& before, const Step& step, Index rank, const Network& network = {});

/// The judge of schedules. Over all ranks, every send must have its receive. Every element of every target tile must be
/// written exactly once (for sums once per summand), from a rank that holds it. Fails with Code::plan, with rank, peer
/// and box.
[[nodiscard]] Result<void> check_schedules(const Layout& before, const Step& step,
                                           const std::vector<Schedule>& schedules);

}  // namespace reshard
