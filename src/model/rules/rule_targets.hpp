// Applies the rules of the target to the tensors of a list.
#pragma once

#include "reshard/model/rules.hpp"
#include "src/model/rules/rule_lines.hpp"

namespace reshard::notation {

/// Adds targets, ends and moves to a model whose sources are `tensors`. Errors: as apply_rules.
[[nodiscard]] Result<void> place_targets(const RuleEnd& end, std::span<const ListedTensor> tensors,
                                         CheckpointMapping& model);

}  // namespace reshard::notation
