// Text that all frameworks share.
#pragma once

#include "reshard/emit/write.hpp"
#include "src/emit/stages.hpp"

namespace reshard {

[[nodiscard]] Result<std::string> jax_text(const TileProgram& program);
[[nodiscard]] Result<std::string> stablehlo_text(const TileProgram& program);
[[nodiscard]] Result<std::string> torch_text(const TileProgram& program);

/// The mesh of the source with every axis cut where an end cuts it, so that both ends name whole axes only: y becomes
/// y_1 and y_2. Positions stay. Errors: unsupported if the cuts of an axis form no chain, or if the ends have different
/// device orders.
[[nodiscard]] Result<Mesh> whole_axes_mesh(const TileProgram& program);

/// Both ends in one line.
[[nodiscard]] std::string headline(const TileProgram& program);

/// value_of(digits, position) times `part`, as a Python expression of the variable `position`.
[[nodiscard]] std::string python_start(const AtomList& digits, Index part, std::string_view position);
/// 8, 4: for a Python call; (8,) or (8, 4) as a tuple.
[[nodiscard]] std::string listed(const std::vector<Index>& numbers);
[[nodiscard]] std::string python_tuple(const std::vector<Index>& numbers);
/// (0, 4), (12, 16): the bounds of intervals, as Python tuples.
[[nodiscard]] std::string python_runs(const std::vector<Interval>& runs);
/// A list of lists, broken if a line gets long. `indent` stands before all lines but the first.
[[nodiscard]] std::string python_groups(const std::vector<std::vector<Index>>& groups, std::string_view indent);

/// f32[16,8]
[[nodiscard]] std::string shape_text(DType dtype, const std::vector<Index>& shape);

/// Writes consecutive reshapes and transposes as one expression of method calls: .reshape(4, 2).transpose(1, 0). Moves
/// `next` past them.
[[nodiscard]] std::string python_views(const std::vector<Operation>& operations, std::size_t& next,
                                       std::string_view transpose);

}  // namespace reshard
