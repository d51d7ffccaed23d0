// What processes tell each other before they prepare: those outside of a grid know nothing of its matrix.
#pragma once

#include "bindings/scalapack/kept.hpp"

namespace reshard::scalapack {

/// One end as all processes know it.
struct AgreedEnd {
    Cyclic cyclic;
    std::vector<Index> ranks;  ///< of the communicator, row by row of the grid
};

/// Both ends, the same on all processes.
struct Agreed {
    AgreedEnd source;
    AgreedEnd target;
};

/// Collective. Errors, on all processes: mismatch (processes disagree, or no process is in a grid, or an array of some
/// process is smaller than its descriptor says); backend.
[[nodiscard]] Result<Agreed> agree(MPI_Comm communicator, const Question& question);

}  // namespace reshard::scalapack
