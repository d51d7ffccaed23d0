// From plan to messages: a step on one rank becomes sends, receives and fills over boxes. Above this nothing knows MPI
// or CUDA; below it nothing knows layouts.
#pragma once

#include "reshard/plan.hpp"
#include "reshard/planner/network.hpp"

namespace reshard {

/// A factor, times / over.
struct Scale {
    Index times = 1;  ///< numerator
    Index over = 1;   ///< denominator
    friend bool operator==(const Scale&, const Scale&) = default;
};

/// A box that moves between this rank and `peer`, in global indices. In each dimension it lies within one interval of
/// the sender's source tile and within one of the receiver's target tile.
struct Transfer {
    Index peer = 0;  ///< a rank; this one for what stays
    Box box;         ///< global indices
    friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// One step on one rank. Receives with peer == rank are local copies and have no send. With any Combine but copy the
/// first receive that covers an element stores and later ones combine, in the order of the list: the order of reduction
/// is the order of the summands, the same on every rank and run (a native all_reduce may take another).
/// An avg is a sum and one factor: a reduction divides by what the divisor falls by, a zero_fill multiplies by what it
/// rises by.
/// An all_reduce lists the contributors, not the traffic: a native collective receives 2T(g-1)/g for it.
/// Two ranks may exchange several boxes; the k-th send to a peer is that peer's k-th receive from this rank.
struct Schedule {
    StepKind kind = StepKind::exchange;  ///< of the step
    Index rank = 0;                      ///< whose schedule it is
    Tile source_tile;                    ///< what the rank holds before the step
    Tile target_tile;                    ///< and after it
    Combine combine = Combine::copy;     ///< what a receive does with what is there
    std::vector<Transfer> sends;         ///< to others
    std::vector<Transfer> receives;      ///< from others, and local copies
    std::vector<Box> fills;              ///< boxes of the target tile that become the identity before the receives
    std::vector<Index> group;            ///< of a collective in equal blocks: its ranks, in order; else empty
    Combine identity = Combine::sum;     ///< whose neutral element fills: 0, 1, lowest or highest
    Scale scale = {};                    ///< for the boxes below
    std::vector<Box> scaled = {};        ///< boxes of the target tile that are multiplied once all has arrived
    friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// The schedule of `step` on `rank`. pre: the step is typed. The holders that are nearest on the network share the
/// work: where all are as near as any, no device sends more than ceil(elements that others want of its tile / holders
/// of that tile) (the stripe rule). Ranks beyond the layout's devices get an empty schedule. Cost: linear in the peers
/// of the rank, not in the devices, except for replicated sources of an exchange, which is linear in the devices that
/// want the tile.
[[nodiscard]] Schedule schedule(const Layout& before, const Step& step, Index rank, const Network& network = {});

/// The judge of schedules: over all ranks, every send has its receive, every element of every target tile is written
/// exactly once (once per summand for sums), from a rank that holds it. Code::plan with rank, peer and box if not.
[[nodiscard]] Result<void> check_schedules(const Layout& before, const Step& step,
                                           const std::vector<Schedule>& schedules);

}  // namespace reshard
