// Bytes that the ends of a list take on a device while each of its buckets runs. One rule, for the judge that states it
// and the executor that keeps it.
#pragma once

#include "reshard/planner/list.hpp"

namespace reshard {

/// Errors: plan, with the first array or bucket that is wrong.
[[nodiscard]] Result<void> each_in_one_bucket(const ListPlan& list);

/// Source and target in full tiles, as on a device that has both; saturates.
[[nodiscard]] Index full_ends(const Plan& plan);

/// The bytes of one array on one device.
struct EndBytes {
    Index source = 0;
    Index target = 0;
};

/// The bytes that a device holds of these arrays while each bucket runs: both ends of all arrays; with `donate` the
/// sources of this bucket and of later ones, and the targets of this bucket and of earlier ones. Saturates.
[[nodiscard]] std::vector<Index> held_on_device(std::span<const EndBytes> arrays,
                                                std::span<const std::vector<std::size_t>> buckets, bool donate);

/// For each bucket the most bytes of sources and targets that any device holds while it runs, in full tiles.
[[nodiscard]] std::vector<Index> ends_held(std::span<const Plan> plans,
                                           std::span<const std::vector<std::size_t>> buckets, bool donate);

}  // namespace reshard
