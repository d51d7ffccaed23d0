// One call of p?gemr2d as this process sees it, and how processes tell each other the rest: a process outside of a grid
// knows nothing of its matrix.
#pragma once

#include <string>

#include "bindings/scalapack/submatrix.hpp"
#include "reshard/redistribute.hpp"

namespace reshard::scalapack {

/// One end of a move as this process has it. All 0 outside of its grid.
struct End {
    std::uint64_t grid = 0;  ///< number_of_grid
    Grid shape = {};
    Descriptor descriptor = {};
    std::array<int, 2> begin = {};  ///< from 0
    [[nodiscard]] bool inside() const { return grid != 0; }
};

/// The arguments of a call, as far as one process knows them.
struct Question {
    DType dtype = DType::f64;
    std::array<int, 2> shape = {};  ///< rows and columns
    End source;
    End target;
};

/// Two grids of this process never have the same number, even if BLACS uses the number of a context again.
[[nodiscard]] Result<std::uint64_t> number_of_grid(MPI_Comm communicator);

/// The same text for the same question, and for no other.
[[nodiscard]] std::string name_of(const Question& question);

/// Collective. Both ends as all processes know them. Errors, on all processes: mismatch if processes disagree, if no
/// process is in a grid, or if some local array is smaller than its descriptor says; backend.
[[nodiscard]] Result<Redistribution> ask(MPI_Comm communicator, const Question& question);

}  // namespace reshard::scalapack
