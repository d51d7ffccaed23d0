// `plan --certify`: the checker that is extracted from the proofs judges the plan once more, in a process of its own.
#pragma once

#include <optional>
#include <string>

#include "reshard/check.hpp"
#include "src/schedule/owned_boxes.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

/// The result of the checker, in bytes of a device. No lower bound is proved if the target has unreduced axes.
struct Certified {
    Index peak_bytes = 0;
    Index received_bytes = 0;
    std::optional<Index> lower_bound_bytes;
    std::string claim;  ///< proved optimal | proved within q of the bound | proved, ...
};

/// Asks the checker `named`, or else the one in RESHARD_CHECKER, or reshard-checker on PATH or beside the tool.
/// Errors: backend (no checker, or it does not answer), plan (it rejects, or its figures are not the verdict's),
/// unsupported (a plan that cannot be written down for it).
[[nodiscard]] Result<Certified> certify(const Judged<Plan>& judged, const std::string& named);

/// Asks the checker about an exchange of boxes. Returns the most elements that a rank receives; it is proved that no
/// protocol brings it fewer. Errors: as above.
[[nodiscard]] Result<Index> certify(const OwnedBoxes& boxes, const std::string& named);

[[nodiscard]] std::string certified_line(const Certified& certified);
[[nodiscard]] Json certified_json(const Certified& certified);

}  // namespace reshard::cli
