// The functions of BLACS that we call. The program brings them: a caller of p?gemr2d is linked to BLACS.
#pragma once

#include <mpi.h>

#include <array>

#include "reshard/planner/integer.hpp"

extern "C" {
void blacs_get_(const int* context, const int* what, int* value);
void blacs_gridinfo_(const int* context, int* rows, int* columns, int* row, int* column);
}

namespace reshard::scalapack {

/// ScaLAPACK's DESC_ of a block-cyclic matrix.
struct Descriptor {
    int type;
    int context;
    int rows, columns;
    int row_block, column_block;
    int first_row, first_column;  ///< the process of the grid that holds the first block
    int leading;                  ///< dimension of the local array
};
static_assert(sizeof(Descriptor) == 9 * sizeof(int));

/// A process grid, and where this process stands in it.
struct Grid {
    std::array<int, 2> extents = {-1, -1};  ///< rows and columns of processes
    std::array<int, 2> place = {-1, -1};    ///< -1 outside

    /// The grid of a context. The context may be -1, or may not have this process.
    static Grid of(int context) {
        Grid grid;
        if (context < 0) return grid;
        blacs_gridinfo_(&context, &grid.extents[0], &grid.extents[1], &grid.place[0], &grid.place[1]);
        if (grid.place[0] < 0 || grid.place[1] < 0 || grid.place[0] >= grid.extents[0] ||
            grid.place[1] >= grid.extents[1]) {
            grid.place = {-1, -1};
        }
        return grid;
    }
    [[nodiscard]] bool inside() const { return place[0] >= 0; }
};

/// The communicator of a context that this process is in; it is BLACS's.
inline MPI_Comm communicator_of(int context) {
    constexpr int of_the_context = 10;
    int communicator = 0;
    blacs_get_(&context, &of_the_context, &communicator);
    return MPI_Comm_f2c(communicator);
}

}  // namespace reshard::scalapack
