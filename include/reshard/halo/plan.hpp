// The cost of filling halos before it runs, and the choice between two ways.
#pragma once

#include "reshard/halo/halo.hpp"
#include "reshard/planner/cost.hpp"

namespace reshard {

/// A fill of one array.
struct HaloMove {
    HaloLayout target;  ///< the cells that each device holds afterwards
    /// Empty: in place. The blocks are in their arrays, and a run copies nothing but halos and writes nothing else.
    /// Otherwise the layout of the tiles that a run reads; it fills blocks and halos in one exchange. Its mesh may have
    /// other devices than the target's.
    std::optional<Layout> source = std::nullopt;
    /// The halos around the tiles in the source's arrays, one per dimension; empty: none. A run does not read them.
    std::vector<Halo> source_halos = {};
};

/// The arrays that a run reads: of the source with its halos, or of the target in place. A run reads the cells core_of.
[[nodiscard]] HaloLayout source_arrays(const HaloMove& move);

/// How halos in place are filled. Both ways bring each device the same elements.
enum class HaloWay {
    at_once,       ///< one round. A device receives from each device whose block its halo touches, corners too.
    by_dimension,  ///< a round for each dimension with a halo. A round also carries cells that earlier ones brought.
};

[[nodiscard]] std::string_view name(HaloWay way);  ///< all at once, dimension by dimension

/// The cost of a fill. All maxima are over devices.
struct HaloPrice {
    HaloWay way = HaloWay::at_once;  ///< the way that has this price
    Index rounds = 0;                ///< in which some device receives
    Index messages = 0;              ///< the most that a device receives, over all rounds
    Index received_bytes = 0;        ///< the most that a device receives; no protocol brings it less
    Index picoseconds = 0;           ///< the rounds one after the other: the levels of the machine, then local copies
    bool exact = true;               ///< false: beyond 4096 devices only some in the middle of the mesh were counted
    friend bool operator==(const HaloPrice&, const HaloPrice&) = default;
};

/// The price of one way. Each round takes the time of each level that it uses, as steps do (step_times).
/// Errors: as validate; mismatch (the source is of another array); unsupported (a source with summands, a source and
/// by_dimension).
[[nodiscard]] Result<HaloPrice> price_halo(const HaloMove& move, HaloWay way, const Machine& machine);

/// A fill with its prices.
struct HaloPlan {
    HaloWay way = HaloWay::at_once;  ///< the chosen one
    std::vector<HaloPrice> prices;   ///< of the ways that the move has; at_once comes first
    friend bool operator==(const HaloPlan&, const HaloPlan&) = default;
};

/// Prices all ways of a move. Chooses by_dimension if it takes less than half of the time: messages of one round
/// overlap in part, and a round waits for the one before. Chooses at_once if all ranks of the backend reach each
/// other's memory (Capabilities::one_exchange), because a fill is one pass through memory then. Errors: as price_halo.
[[nodiscard]] Result<HaloPlan> plan_halo(const HaloMove& move, const Machine& machine = laptop(),
                                         const Capabilities& capabilities = {});

}  // namespace reshard
