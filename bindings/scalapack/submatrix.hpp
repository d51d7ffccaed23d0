// A submatrix of a block-cyclic matrix as a layout, and its place in the memory of a process. A local array is stored
// by columns. The columns are dimension 0 of the layout, so it lies row-major.
#pragma once

#include <span>

#include "bindings/scalapack/blacs.hpp"
#include "reshard/layout.hpp"

namespace reshard::scalapack {

/// The facts of a matrix and its grid that all processes must know. In every pair rows come first.
struct Cyclic {
    std::array<Index, 2> grid = {};    ///< processes
    std::array<Index, 2> extent = {};  ///< of the whole matrix
    std::array<Index, 2> block = {};
    std::array<Index, 2> first = {};  ///< process that holds the first block
    std::array<Index, 2> begin = {};  ///< of the submatrix, from 0
};

/// Indices before `end` that belong to process `place` of a dimension.
[[nodiscard]] Index own_before(const Cyclic& cyclic, std::size_t dim, Index end, Index place);

/// Errors: mismatch (a submatrix outside the matrix, a first process outside the grid, a block below 1).
[[nodiscard]] Result<void> validate(const Cyclic& cyclic, std::array<Index, 2> shape, const char* name);

/// The submatrix of that shape on the ranks that are listed row by row of the grid. pre: validate.
[[nodiscard]] Result<Layout> layout_of(const Cyclic& cyclic, std::array<Index, 2> shape, DType dtype,
                                       std::span<const Index> ranks);

/// The place of the submatrix in the local array of the process at `place`, with this leading dimension.
[[nodiscard]] Storage storage_of(const Cyclic& cyclic, std::array<Index, 2> place, Index leading);

}  // namespace reshard::scalapack
