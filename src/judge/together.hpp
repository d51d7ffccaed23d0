// Arrays of a list that run step by step together, so that what they send to one peer in a step shares messages: each
// has a part of the workspace of its own. One rule for the judge that states what they hold and the executor that
// keeps it.
#pragma once

#include "reshard/planner/list.hpp"

namespace reshard {

/// Errors: plan (a group of fewer than two arrays, of arrays of several buckets, or of one that does not run as steps;
/// an array in two groups).
[[nodiscard]] Result<void> may_run_together(const ListPlan& list);

/// The start of each workspace's part, and the end of the last one; saturates.
struct Parts {
    std::vector<Index> offsets;
    Index bytes = 0;
};
[[nodiscard]] Parts parts_of(std::span<const Index> workspaces);

/// The workspace of each bucket, if plan i alone needs workspaces[i].
[[nodiscard]] std::vector<Index> bucket_workspaces(const ListPlan& list, std::span<const Index> workspaces);

}  // namespace reshard
