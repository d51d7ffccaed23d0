// Parts of the rule that chooses the execution of a plan, for one plan and for the plans of a list.
#pragma once

#include "reshard/execution.hpp"

namespace reshard {

/// The room that a policy's limit leaves beside `held` bytes of ends: index_max without a limit, 0 if nothing is left.
[[nodiscard]] Index workspace_room(const MemoryPolicy& memory, Index held);

/// The workspace of a plan that runs so, in full tiles; saturates. A split run uses no room in the memory of the ends,
/// which holds the other pieces.
[[nodiscard]] Index workspace_bytes(const Plan& plan, const Execution& execution, bool donate);

/// As choose_execution, with so many bytes for the workspace. pre: a plan that the judge takes as steps.
[[nodiscard]] Execution choose_within(const Plan& plan, const Capabilities& capabilities, Index workspace_bytes_max,
                                      bool donate, Vocabulary vocabulary);

/// Adds a policy to a fingerprint. The default policy adds nothing.
void mix(std::uint64_t& fingerprint, const MemoryPolicy& memory);

}  // namespace reshard
