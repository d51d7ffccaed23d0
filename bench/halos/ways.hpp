// Hand-written ways to fill a periodic halo with corners. All fill the array in place.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reshard::bench {

using Ints = std::vector<int>;

/// An array of f64 on a grid of ranks, with one width of the halo.
struct Setting {
    Ints extents;
    Ints grid;
    Ints at;  // this rank's place in the grid
    int halo = 1;
    MPI_Comm grid_ranks = MPI_COMM_NULL;

    [[nodiscard]] Ints wide() const {
        Ints shape;
        for (std::size_t k = 0; k < extents.size(); ++k) shape.push_back(extents[k] / grid[k] + 2 * halo);
        return shape;
    }
    [[nodiscard]] int neighbour(const Ints& step) const {
        Ints place = at;
        for (std::size_t k = 0; k < at.size(); ++k) place[k] = (at[k] + step[k] + grid[k]) % grid[k];
        int rank = 0;
        MPI_Cart_rank(grid_ranks, place.data(), &rank);
        return rank;
    }
};

/// Fills the halo of one array.
using Fill = std::function<void()>;
/// A way to fill, and its times.
struct Contestant {
    std::string name;
    double* array;
    Fill fill;
    std::vector<double> seconds = {};  // one per round
};

/// A message of a subarray for each of the neighbours.
[[nodiscard]] Fill all_at_once(const Setting& setting, double* array);
/// Two messages in each dimension. Later dimensions carry the halos of earlier ones, so corners come along.
[[nodiscard]] Fill dim_by_dim(const Setting& setting, double* array);
/// The same dimension by dimension, prepared once.
[[nodiscard]] Fill persistent(const Setting& setting, double* array);
/// A message for each of the neighbours, packed and unpacked by loops.
[[nodiscard]] Fill packed(const Setting& setting, double* array);
/// MPI_Neighbor_alltoallw on a graph of the ranks.
[[nodiscard]] Fill neighbour_collective(const Setting& setting, double* array);
/// GHEX, if bench/CMakeLists.txt found it. Empty unless the array has two or three dimensions.
[[nodiscard]] Fill ghex_fill(const Setting& setting, double* array);
/// The name of the contestant in a window.
inline constexpr std::string_view window_name = "MPI-3 window";
/// How ranks meet before and after they read each other's arrays.
enum class Meeting {
    barriers,  ///< two barriers of MPI
    flags,     ///< two flags for each rank, which its neighbours poll: the floor of any fill that is correct
    none       ///< never: the copies alone
};
/// No message: each rank reads its neighbours' arrays in a shared window of MPI-3. The array of `cells` cells is the
/// window's own. pre: all ranks share memory.
[[nodiscard]] Contestant in_window(const Setting& setting, std::size_t cells, Meeting meeting);

}  // namespace reshard::bench
