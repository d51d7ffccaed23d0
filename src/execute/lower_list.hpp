// Lowers a list of plans in buckets to a backend's input on one rank, within a footprint limit.
#pragma once

#include "reshard/execute.hpp"

namespace reshard {

/// The part of one rank in a bucket: one or more pieces of each of its arrays.
struct LoweredBucket {
    std::vector<std::size_t> arrays;    ///< their numbers, in the order in which they run
    std::vector<RankPlan> pieces;       ///< for the backend, in the order of travel
    std::vector<std::size_t> array_of;  ///< of each piece
    std::vector<std::size_t> place_of;  ///< of pieces that overlap, by number: where they travel; else none
    Index staging_room = index_max;     ///< bytes that the limit leaves to the backend for it
};

/// The part of one rank in a list.
struct LoweredList {
    std::vector<RankPlan> arrays;  ///< in the caller's order; of a split one, with the workspace of a piece
    std::vector<LoweredBucket> buckets;
};

/// Lowers each plan as it is to run. The limit may leave room on this rank. Buckets share it for staging by their
/// numbers of arrays, since the staging of all buckets is held at once.
/// Errors: as lower; mismatch if the backend has too few ranks; infeasible if the caller's own buffers are over the
/// limit.
[[nodiscard]] Result<LoweredList> lower_list(const Judged<ListPlan>& judged, const Backend& backend,
                                             std::span<const Storages> storages);

/// The most bytes of sources, targets and workspaces that this rank holds while any bucket runs; saturates.
[[nodiscard]] Index bytes_of_buffers(std::span<const RankPlan> plans, std::span<const std::vector<std::size_t>> buckets,
                                     bool donate);

}  // namespace reshard
