// Problem lines with the fields of the peers' own tables (tests/cases), read as if they were ours.
#pragma once

#include <string>
#include <string_view>

#include "tool/request/json.hpp"

namespace reshard::cli {

/// True when the line names a notation or a peer. Such a line may have fields that are nothing to us.
[[nodiscard]] bool is_peer_line(std::string_view line);

/// The same problem as a line of ours. What is read: id, source, target (also src, dst; text, or a list of placements),
/// mesh (text or sizes), devices (a count), target_mesh, device_ids, target_device_ids, dtype, shape, out_shape,
/// unreduced, source_extra, target_extra, source_order, target_order (also src_order, dst_order), notation, options.
/// Errors: syntax; unsupported, for what is not one array of known shape that keeps its values.
[[nodiscard]] Result<std::string> own_line(std::string_view line);

/// The id of a line that may be wrong otherwise; null when there is none.
[[nodiscard]] Json id_of(std::string_view line);

}  // namespace reshard::cli
