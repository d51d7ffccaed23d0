// The arrays of a publisher or a subscriber by the rules of its model, in place of a layout for each.
#pragma once

#include <string_view>
#include <vector>

#include "reshard/live/status.hpp"
#include "reshard/live/subscribe.hpp"
#include "reshard/model/rules.hpp"

namespace reshard::live {

/// An array that a job wants by rules.
struct WantedByRule {
    std::string name;     ///< at this job
    WantedTensor wanted;  ///< its name or its parts at the publisher, and the layout at this job
};

/// Returns the arrays that the `target` lines of rules make of a publisher's arrays, in the order of the publisher. The
/// device r of the target's mesh is rank r of this job. The lines of the source do not matter. Errors: as apply_rules;
/// usage (no `target` line); unsupported (an array with owners).
[[nodiscard]] Result<std::vector<WantedByRule>> wanted_by_rules(std::string_view rules,
                                                                std::span<const OfferedTensor> offered);

/// Returns the arrays of a publisher with the layouts of the `source` lines of rules, in the order of the list. The
/// device r of the source's mesh is rank r of this job. Errors: as place_sources; usage (no `source` line); unsupported
/// (an array with owners).
[[nodiscard]] Result<std::vector<OfferedTensor>> published_by_rules(std::string_view rules,
                                                                    std::span<const ListedTensor> tensors);

}  // namespace reshard::live
