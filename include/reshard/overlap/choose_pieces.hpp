// Chooses the pieces of a run that overlaps with work, by the price of its plan.
#pragma once

#include <functional>

#include "reshard/planner/cost.hpp"

namespace reshard {

/// Work that can be cut like the run. It makes the source piece by piece, or uses the pieces as they arrive.
struct PieceWork {
    std::size_t dim = 0;         ///< the dimension of the array that pieces cut
    Index block = 1;             ///< as in Split: pieces have the same indices of every block
    bool makes_source = false;   ///< true: work offers pieces (Ticket::offer); false: it uses them (Ticket::arrived)
    bool steps_overlap = false;  ///< Capabilities::steps_overlap of the backend: two pieces are in steps at once
    /// Seconds of work on the indices [begin, end) of all blocks; 0 <= begin < end <= block. Called once for each pair
    /// of places where a piece may end.
    std::function<double(Index begin, Index end)> seconds = {};
    /// Seconds of work that needs no piece, such as work on this rank's own data. It is done before the first wait.
    /// 0 if work makes the source.
    double seconds_before = 0;
    Index pieces_max = 32;  ///< at least 1
    Index places = 64;      ///< where pieces may end, evenly over a block; 1 to 1024, places^2 * pieces_max <= 2^22
};

/// The chosen pieces, and how long run and work then take.
struct PieceChoice {
    std::optional<Split> split;    ///< nullopt: one piece, the plan runs whole
    Index picoseconds = 0;         ///< until transfer and work in these pieces are done
    Index serial_picoseconds = 0;  ///< until both are done if they do not overlap
};

/// Chooses pieces of any lengths, such that run and work end soonest. Dynamic programming over the ends finds the best
/// pieces in ascending order; then it chooses their best order (Johnson 1954). Among the cuts within 2% of the best,
/// returns the cut that degrades least if the work takes 20% less or 30% more time than predicted, or if pieces cost
/// more.
/// A run of k pieces is priced like the plan, with its latencies and Machine::piece_ps k times; if its steps overlap,
/// like run_picoseconds. Work beside it takes Machine::slowed_percent of its own time. Work that needs no piece comes
/// first. Ranks with the same seconds get the same pieces: measure on one rank and tell the others.
/// Errors: usage (no function, seconds that are negative or not a number, seconds_before although work makes the
/// source, a limit below 1, too many places), plan (can_split).
[[nodiscard]] Result<PieceChoice> choose_pieces(const Judged<Plan>& plan, const Machine& machine,
                                                const PieceWork& work);

}  // namespace reshard
