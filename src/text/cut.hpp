// The cut of a dimension that is not ceil-div, as text: 10@x[5,3,2,0], 10@x[balanced] and 100@x/32. Grammar in
// text.hpp.
#pragma once

#include "reshard/layout.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

/// Reads the cut after the axes of `dim`, if one follows. Errors: syntax, layout (shares do not add up, or a shard does
/// not exist), overflow.
[[nodiscard]] Result<Dim> scan_cut(Scanner& scanner, Dim dim);

/// Reads the rest of flattened dimensions, `@axes` or `@axes[1,3,2]`: each tile of `dims` is flattened, and the axes
/// deal it out in units. `place` is where the dimensions begin. Errors: as scan_dim_axes; syntax; at `place`, as
/// flattened.
[[nodiscard]] Result<Dim> scan_dealt(Scanner& scanner, const Mesh& mesh, AtomList& used, std::span<const Dim> dims,
                                     std::size_t place);

/// Empty for ceil-div.
[[nodiscard]] std::string format_cut(const Dim& dim);

}  // namespace reshard::notation
