// Cuts a transfer and the work beside it into pieces so that both end soonest. Transfer and work are two machines, and
// every piece passes one after the other.
#pragma once

#include <functional>
#include <vector>

#include "src/price/run_times.hpp"

namespace reshard {

/// Times in picoseconds.
struct OverlapTimes {
    /// Times of the transfer. The first piece takes `alone`. Each further piece takes the longest of `behind` for the
    /// number of pieces.
    RunTimes run = {{}, std::vector<PieceTime>(1)};
    Index slowed_percent = 100;  ///< time of work beside a transfer, in percent of its time alone
    bool work_first = false;     ///< true: work makes the pieces to transfer; false: it uses arrived pieces
    Index before = 0;            ///< work that waits for no piece; 0 if work is first
    std::function<Index(Index begin, Index end)> work;  ///< work on the indices [begin, end)
};

struct Cuts {
    std::vector<Index> ends;         ///< ends of the pieces, ascending, up to the extent
    std::vector<std::size_t> order;  ///< order of the pieces
    Index time = 0;                  ///< picoseconds until both are done
    Index whole_work = 0;            ///< picoseconds of the work on all pieces as one, alone
};

/// Picoseconds until both are done if the transfer, which takes `transfer`, is not cut.
[[nodiscard]] Index in_one_piece(const OverlapTimes& times, Index transfer, Index whole_work);

/// Picoseconds until both are done, in pieces that pass in this order.
[[nodiscard]] Index overlapped_time(const OverlapTimes& times, Index extent, const std::vector<Index>& ends,
                                    const std::vector<std::size_t>& order);

/// The best ascending pieces of `extent` indices with ends at multiples of extent / places. Dynamic programming finds
/// them for each number of pieces up to `pieces_max`. Each result then gets its best order (Johnson 1954: shortest
/// transfer first while work is longer, then longest work first). Among equals the fewest pieces win. Each piece adds
/// an error of at most 2^-10 of transfer and work together. Calls `work` once for each pair of places.
[[nodiscard]] Cuts best_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max);

/// Among the cuts within 2% of the best time, returns the cuts that degrade least if the work takes 20% less or 30%
/// more time than predicted and each piece costs 1/400 of the whole. Candidates are the best cuts for each of these
/// cases.
[[nodiscard]] Cuts steady_cuts(const OverlapTimes& times, Index extent, Index places, Index pieces_max);

}  // namespace reshard
