// Boxes that ranks name: the ones that each rank has, and the ones that it wants.
#pragma once

#include <string>
#include <vector>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// The boxes of one rank, in global indices. Any of them may be empty.
struct RankBoxes {
    std::vector<Box> have;  ///< elements that the rank owns
    std::vector<Box> want;  ///< elements that it wants; these boxes may overlap
    friend bool operator==(const RankBoxes&, const RankBoxes&) = default;
};

/// The boxes of all ranks, for arrays of one element type and shape. Invariants (validate): each box lies within the
/// shape, no element is owned twice, and each element that somebody wants is owned.
struct BoxTable {
    DType dtype = DType::f32;      ///< of the elements
    std::vector<Index> shape;      ///< global extents
    std::vector<RankBoxes> ranks;  ///< one entry for each rank
    friend bool operator==(const BoxTable&, const BoxTable&) = default;
};

/// Fails unless the invariants of BoxTable hold. Errors: mismatch (a box has another number of dimensions than the
/// shape, or lies outside; an element is owned twice or, if it is wanted, by nobody; the error names the element and
/// the ranks), overflow (the array has more elements than 64 bits can count).
[[nodiscard]] Result<void> validate(const BoxTable& table);

/// The bytes that an exchange of boxes moves for one rank, and the ranks that it meets.
struct BoxTraffic {
    Index received_bytes = 0;  ///< wanted elements that others own, each once; no protocol can bring fewer
    Index sent_bytes = 0;      ///< to other ranks
    Index copied_bytes = 0;    ///< within the rank: own elements, and elements that several of its boxes want
    Index senders = 0;         ///< ranks that it receives from
    Index receivers = 0;       ///< ranks that it sends to
    friend bool operator==(const BoxTraffic&, const BoxTraffic&) = default;
};

/// Returns the traffic of each rank. pre: validate(table).
[[nodiscard]] std::vector<BoxTraffic> traffic_of(const BoxTable& table);

/// Returns the estimated time of one exchange on a machine, in picoseconds, saturating. Each level of the machine takes
/// start + latency x messages + load / bandwidth for its busiest device or block, as in step_times. Then the largest
/// set of wanted boxes is copied. pre: validate(table).
[[nodiscard]] Index exchange_picoseconds(const BoxTable& table, const Machine& machine);

/// Returns two lines for people: the boxes and bytes in all, and the busiest rank with the estimated time.
/// pre: validate(table).
[[nodiscard]] std::string describe(const BoxTable& table, const Machine& machine = laptop());

}  // namespace reshard
