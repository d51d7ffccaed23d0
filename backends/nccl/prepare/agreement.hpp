// Before anything is made, ranks agree on every step: whether it is a native collective, and whether it is staged. They
// also check that each rank expects the bytes that its peers send.
#pragma once

#include "backends/nccl/prepare/step_program.hpp"

namespace reshard::nccl {

struct StepAgreed {
    Agreed agreed;
    bool native = false;                     ///< on all ranks, members or not
    Index message_elements_max = index_max;  ///< of a piece, in case the step travels as messages after all
    std::uint64_t partition = 0;             ///< identifies the groups of the ranks; the same on all ranks
};

/// Collective: one entry per step of the list. Errors, on all ranks: mismatch if ranks bring different numbers of
/// steps, or if a send and its receive differ. The latter names the step and both ranks.
[[nodiscard]] Result<std::vector<StepAgreed>> agree_on_steps(Base& base, const std::vector<RankPlan>& plans);

}  // namespace reshard::nccl
