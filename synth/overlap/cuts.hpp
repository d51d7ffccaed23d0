// Where to cut a transfer and the work beside it, so that both end soonest: two machines, transfer and work, that every
// piece passes one after the other.
#pragma once

#include <functional>
#include <vector>

#include "src/price/run_times.hpp"

namespace reshard {

/// Times in picoseconds.
struct OverlapTimes {
    /// Of the transfer: the piece that is first takes `alone`, each further one what is the longest of `behind` for the
    /// number of pieces.
    RunTimes run = {{}, std::vector<PieceTime>(1)};
    Index slowed_percent = 100;  ///< what work takes while a transfer runs beside it, of what it takes by itself
    bool work_first = false;     ///< work makes what is transferred; else it uses what has arrived
    Index before = 0;            ///< work that waits for no piece; none where work is first
    std::function<Index(Index begin, Index end)> work;  ///< on the indices [begin, end)
};

struct Cuts {
    std::vector<Index> ends;         ///< of the pieces, ascending; the last one is the extent
    std::vector<std::size_t> order;  ///< in which they pass
    Index time = 0;                  ///< picoseconds until both are done
    Index whole_work = 0;            ///< picoseconds of all work on pieces, as one, by itself
};

/// Picoseconds until both are done where the transfer, which takes `transfer`, is not cut.
[[nodiscard]] Index in_one_piece(const OverlapTimes& times, Index transfer, Index whole_work);

/// Picoseconds until both are done, in pieces that pass in this order.
[[nodiscard]] Index overlapped_time(const OverlapTimes& times, Index extent, const std::vector<Index>& ends,
                                    const std::vector<std::size_t>& order);

/// The best ascending pieces of `extent` indices with ends at multiples of extent / places, by dynamic programming, for
/// each number of pieces up to `pieces_max`; then, of those, the best order (Johnson 1954: shortest transfer first
/// while work is longer, then longest work first). Of equally good ones the fewest pieces; good to one part in 2^10 of
/// transfer and work together for each piece. Asks for the work between two places once.
[[nodiscard]] Cuts best_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max);

/// Of cuts that take within a fiftieth of that, those that take least where work may turn out to take a fifth less or
/// three tenths more, too, and each piece a four hundredth of the whole: the best ones for each of these, and equal
/// ones.
[[nodiscard]] Cuts steady_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max);

}  // namespace reshard
