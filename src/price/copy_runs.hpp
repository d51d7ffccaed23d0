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

/// The elements of one run: all of a tile in the inner dimensions that both ends cut equally, times the average overlap
/// of the two ends' tiles in the next dimension. `dim(i)` is dimension i as a CutDim, called from the last on.
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

/// The cost of runs in addition to their bytes, for a tile of `tile` elements in runs of `run`. The first run is free,
/// so that a tile that is one run costs only its bytes. Saturating.
[[nodiscard]] inline Index runs_picoseconds(Index tile, Index run, const Machine& machine) {
    return saturating_multiply(std::max<Index>(ceil_divide(tile, run), 1) - 1, machine.copy_run_ps);
}

/// One dimension of the tile behind a slice, and whether the slice cuts it.
struct SlicedDim {
    Index side = 1;
    bool cut = false;
};

/// The runs of a slice's view of a tile, beyond the first. A reader of the view needs this many more runs. Each
/// dimension that is cut divides as many rows as lie outside of it. Cutting the outermost dimension first gives this
/// sum, and no other order gives less. Saturating.
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

/// The time of the local copies of one step: the tile after it, and its runs. A slice is a view, and another step reads
/// its runs. plan_times adds the copy of a last slice.
[[nodiscard]] Index copies_picoseconds(const Layout& before, const Step& step, const Machine& machine);
/// The same for a step of a plan: a cast that is part of a copy costs nothing.
[[nodiscard]] Index copies_picoseconds(const Plan& plan, std::size_t step, const Machine& machine);

}  // namespace reshard
