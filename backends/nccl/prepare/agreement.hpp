// The agreement between ranks on every step, before anything is built. They agree on native collectives and on staging,
// and they check that sent and expected bytes match.
#pragma once

#include "backends/nccl/prepare/step_program.hpp"

namespace reshard::nccl {

struct StepAgreed {
    Agreed agreed;
    bool native = false;                     ///< on all ranks, members or not
    Index message_elements_max = index_max;  ///< of a piece, if the step travels as messages after all
    std::uint64_t partition = 0;             ///< identifies the division into groups; the same on all ranks
};

/// Collective: returns one entry per step of the list. Errors, on all ranks: mismatch if ranks bring different numbers
/// of steps, or if a send and its receive differ. The latter error names the step and both ranks.
[[nodiscard]] Result<std::vector<StepAgreed>> agree_on_steps(Base& base, const std::vector<RankPlan>& plans);

}  // namespace reshard::nccl
