// Rewrites each line of the peers' own tables as a line of `plan --batch`.
#pragma once

#include <string>
#include <string_view>

#include "tool/request/json.hpp"

namespace reshard::cli {

/// The same problem as a line in our own form. It reads the keys id, source, target (also src, dst; text, or a list of
/// placements), mesh (text or sizes), devices (a count), target_mesh, device_ids, target_device_ids, dtype, shape,
/// out_shape, unreduced, source_extra, target_extra, source_order, target_order (also src_order, dst_order), notation,
/// options. Errors: syntax; unsupported (the line is not one array of known shape that keeps its values).
[[nodiscard]] Result<std::string> own_line(std::string_view line);

}  // namespace reshard::cli
