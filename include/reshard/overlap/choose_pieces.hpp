// Into which pieces a run is cut that overlaps with work, by the price of its plan.
#pragma once

#include <functional>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// Work that can be cut as a run is: before it, making the source piece by piece, or behind it, using what has arrived.
struct PieceWork {
    std::size_t dim = 0;         ///< of the array, which pieces cut
    Index block = 1;             ///< as in Split: pieces have the same indices of every block
    bool makes_source = false;   ///< pieces are offered (Ticket::offer); else used as they arrive (Ticket::arrived)
    bool steps_overlap = false;  ///< Capabilities::steps_overlap of the backend: steps of two pieces go on at once
    /// Seconds that the work takes on the indices from `begin` to `end` of all blocks; 0 <= begin < end <= block. Asked
    /// once for each pair of places where a piece may end.
    std::function<double(Index begin, Index end)> seconds = {};
    /// Of work that waits for no piece, as on what this rank has itself: done before the first one is waited for. Where
    /// pieces are offered there is none.
    double seconds_before = 0;
    Index pieces_max = 32;  ///< at least 1
    Index places = 64;      ///< at which pieces may end, evenly over a block; 1 to 1024, places^2 * pieces up to 2^22
};

/// Into which pieces a run is cut, and how long it and the work take then.
struct PieceChoice {
    std::optional<Split> split;    ///< nullopt: in one piece, as the plan runs by itself
    Index picoseconds = 0;         ///< until transfer and work are done, so cut
    Index serial_picoseconds = 0;  ///< the work before or after the whole run
};

/// The pieces with which run and work end soonest, of any lengths: for pieces that end at those places and pass in
/// their order the best by dynamic programming over their ends; then the best order of those (Johnson 1954). Of cuts
/// within a fiftieth of the best the one that suffers least where work takes a fifth less or three tenths more, or
/// pieces cost more. A run of k pieces is priced as the plan, with its latencies and Machine::piece_ps k times, or,
/// where its steps overlap, as run_picoseconds says; work beside it takes Machine::slowed_percent of its own time. Work
/// that waits for no piece comes first. The same on all ranks that are told the same seconds: measure on one and tell
/// the others. Errors: usage (no function, seconds that are negative or no number, seconds_before where pieces are
/// offered, a limit below 1, too many places), plan (can_split).
[[nodiscard]] Result<PieceChoice> choose_pieces(const Judged<Plan>& plan, const Machine& machine,
                                                const PieceWork& work);

}  // namespace reshard
