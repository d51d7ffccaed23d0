// Regions of memory as MPI datatypes, so that MPI moves them from and to where they lie, unpacked. Everything is made
// of bytes: ranks of one program share one representation. Counts and offsets beyond int are reached by nesting.
#pragma once

#include "backends/mpi/base/handles.hpp"
#include "src/copy/copy.hpp"

namespace reshard::mpi {

/// The elements of the region in row-major order of its dimensions, counted from its first element: the region's own
/// offset is left to the address. pre: not empty.
[[nodiscard]] Result<Datatype> region_type(const Region& region);

/// One element, and a combination over vectors of it, commutative. pre: not copy; the two go together (can_reduce).
[[nodiscard]] Result<Datatype> element_type(DType dtype);
[[nodiscard]] Result<Operation> reduce_operation(DType dtype, Combine combine);

}  // namespace reshard::mpi
