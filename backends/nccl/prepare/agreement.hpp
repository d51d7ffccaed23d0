// What ranks agree on about every step before anything is made: whether it is a native collective, whether it is
// staged, and that the bytes that are sent are those that are expected.
#pragma once

#include "backends/nccl/prepare/step_program.hpp"

namespace reshard::nccl {

struct StepAgreed {
    Agreed agreed;
    bool native = false;                     ///< on all ranks, members or not
    Index message_elements_max = index_max;  ///< of a piece, should the step travel as messages after all
    std::uint64_t partition = 0;             ///< how ranks fall into groups, the same number on all
};

/// Collective: one entry per step of the list. Errors, on all ranks: mismatch when ranks bring different numbers of
/// steps, or a send and its receive differ; the latter names the step and both ranks.
[[nodiscard]] Result<std::vector<StepAgreed>> agree_on_steps(Base& base, const std::vector<RankPlan>& plans);

}  // namespace reshard::nccl
