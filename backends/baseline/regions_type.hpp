// Datatypes as programs make them by hand.
#pragma once

#include "backends/mpi/messages/datatype.hpp"

namespace reshard::mpi {

/// Several regions one after another, counted from the start of their buffer. pre: none is empty, at least one.
[[nodiscard]] Result<Datatype> regions_type(std::span<const Region> regions);

}  // namespace reshard::mpi
