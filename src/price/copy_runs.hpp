// How a step's copies fall into runs: elements that follow each other in the tile before the step and in that after it.
#pragma once

#include <algorithm>
#include <numeric>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// One dimension, and into how many parts the borders of its tiles cut it before a step and after it.
struct CutDim {
    Index extent = 1;
    Index before = 1;
    Index after = 1;
};

/// The elements of one run: all of a tile in the inner dimensions that are cut alike, times what a tile of each end
/// shares on average in the first one that is not. `dim(i)` is dimension i as a CutDim, asked for from the last on.
template <class Dims>
[[nodiscard]] Index run_elements(std::size_t rank, const Dims& dim) {
    Index run = 1;
    for (std::size_t i = rank; i-- > 0;) {
        const auto [extent, before, after] = dim(i);
        // Even cuts share the borders of their common divisor.
        const Index parts = before == after ? before : before + after - std::gcd(before, after);
        run = saturating_multiply(run, ceil_divide(extent, std::max<Index>(parts, 1)));
        if (before != after) break;
    }
    return std::max<Index>(run, 1);
}

/// What runs cost beside their bytes: a tile of so many elements in runs of so many; the first run is for nothing, so
/// that a tile that is one run costs its bytes alone. Saturating.
[[nodiscard]] inline Index runs_picoseconds(Index tile, Index run, const Machine& machine) {
    return saturating_multiply(std::max<Index>(ceil_divide(tile, run), 1) - 1, machine.copy_run_ps);
}

/// One dimension of the tile behind a slice, and whether the slice cuts it.
struct SlicedDim {
    Index side = 1;
    bool cut = false;
};

/// The runs of what a slice leaves of a tile, beyond the first: whoever reads the view comes to as many more. Each
/// dimension that is cut parts as many rows as lie outside of it. Cut one by one, the outermost first, dimensions come
/// to the same in sum, and in no other order to less. Saturating.
template <class Dims>
[[nodiscard]] Index sliced_runs(std::size_t rank, const Dims& dim) {
    Index rows = 1;
    Index runs = 0;
    for (std::size_t i = 0; i < rank; ++i) {
        const auto [side, cut] = dim(i);
        if (cut) runs = saturating_add(runs, std::max<Index>(rows, 1) - 1);
        rows = saturating_multiply(rows, side);
    }
    return runs;
}

/// Of the local copies of one step: the tile after it, and its runs. A slice is a view, whose runs another step reads;
/// plan_times adds a last one's copy.
[[nodiscard]] Index copies_picoseconds(const Layout& before, const Step& step, const Machine& machine);

}  // namespace reshard
