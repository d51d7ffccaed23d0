// Regions of memory as MPI datatypes, so that MPI moves them in place, unpacked. All types are made of bytes, since the
// ranks of one program share one representation. Nested types reach counts and offsets beyond int.
#pragma once

#include "backends/mpi/base/handles.hpp"
#include "src/copy/copy.hpp"

namespace reshard::mpi {

/// The elements of the region in row-major order of its dimensions, counted from its first element. The offset of the
/// region is not included; it belongs to the address. pre: not empty.
[[nodiscard]] Result<Datatype> region_type(const Region& region);

/// One element, and a commutative combination over vectors of it. pre: not copy; the two fit each other (can_reduce).
[[nodiscard]] Result<Datatype> element_type(DType dtype);
[[nodiscard]] Result<Operation> reduce_operation(DType dtype, Combine combine);

}  // namespace reshard::mpi
