// The cut of a dimension that is not ceil-div, as text: 10@x[5,3,2,0], 10@x[balanced] and 100@x/32. Grammar in
// text.hpp.
#pragma once

#include "reshard/layout.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

/// Reads the cut after the axes of `dim`, if one follows. Errors: syntax, layout (shares do not add up, or a shard does
/// not exist), overflow.
[[nodiscard]] Result<Dim> scan_cut(Scanner& scanner, Dim dim);

/// Empty for ceil-div.
[[nodiscard]] std::string format_cut(const Dim& dim);

}  // namespace reshard::notation
