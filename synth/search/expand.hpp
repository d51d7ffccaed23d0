// The typed moves of the vocabulary in digits: every state that one step reaches, with its traffic.
#pragma once

#include <memory>
#include <vector>

#include "reshard/planner/step.hpp"
#include "synth/search/missing_elements.hpp"

namespace reshard {

/// One step in digits: as Move, in elements, and the digits of its group.
struct Edge {
    State state;
    StepKind kind = StepKind::slice;
    Index tile = 1;  ///< after the step
    Index received = 0;
    Index sent = 0;
    Index messages = 0;
    Index group_size = 1;
    std::uint32_t group = 0;  ///< a cover
};

/// Sizes of one state.
struct Sides {
    std::array<Index, lists_max> extent{};
    std::array<Index, lists_max> shards{};
    Index tile = 1;
    std::uint32_t cover = 0;
    std::uint32_t clashes = 0;  ///< the pieces that can not be added
    bool even = true;           ///< all tiles have one shape
};

/// Sizes of one state, and the moves out of it. Slices are given one digit at a time, where they cost nothing; where
/// they cost runs, or sizes do not divide, in one dimension at a time: such costs add up (sliced_runs). The other kinds
/// are given as wide as they come.
class Moves {
public:
    /// `grouped`: permutes and exchanges say who takes part, which only a network of several levels asks for. `fills`:
    /// also what is not unreduced in the target may become so on the way. `sliced_at_once`: slices cost runs.
    Moves(const SearchSpace& frame, bool grouped, bool fills, bool sliced_at_once);

    [[nodiscard]] Sides sides_of(const State& state) const;
    /// At least this is received by the busiest device on any way from `state` to the target (theorem
    /// heuristic_admissible; the incomparable case is lower_bound_incomparable; with sums as lower_bound).
    [[nodiscard]] Index least_to_target(const State& state) const;
    /// The same, never less: where sizes do not divide, by looking at every device.
    [[nodiscard]] Index foreign_to_target(const State& state, Index least) const;
    /// The sizes of the tile's sides and of the summands: what a permute keeps.
    [[nodiscard]] std::uint64_t shape_code(const State& state) const;

    /// Which moves: all; slices and what changes summands; what changes summands alone.
    enum class Wanted { all, slices, sums };
    /// Appends every move out of `state` whose tile has at most `tile_max` elements, permutes and exchanges excepted.
    /// If sizes divide, leaves out all-to-alls that receive more than `received_max` elements.
    void append_moves(const State& state, Index tile_max, std::vector<Edge>& hops, Wanted wanted = Wanted::all,
                      Index received_max = index_max) const;
    /// Appends every permute of `state`: tiles of the same shape, as many summands.
    void append_permutes(const State& state, std::vector<Edge>& hops) const;
    /// The exchange from `state` to `next`, with the sides of both. Fills in the group, sent elements and messages only
    /// if `timed`. pre: as many summands.
    [[nodiscard]] Edge exchange(const State& state, const Sides& before, const State& next, const Sides& after,
                                bool timed) const;
    /// Device 0 receives so many elements in it at least, since it has the first tile of both.
    [[nodiscard]] Index least_in_exchange(const Sides& before, const Sides& after) const {
        return before.tile == 0 ? 0 : after.tile - first_kept(before, after);
    }
    /// Appends every state to no states, with the target's summands where nothing is added up. Appends none, and is
    /// false, where they are `most` or more.
    bool append_all_states(std::size_t most, std::vector<State>& states) const;
    /// Appends the target, the states before its zero_fill, and the same states split further by unused digits. Stops
    /// at about `most` states.
    void append_states_behind(std::size_t most, std::vector<State>& states) const;

private:
    struct Expansion {
        const State& state;
        const Sides sides;
        const Index tile_max;
        const Index received_max;
        std::vector<Edge>& hops;
    };
    /// visit(list) for every shorter list of dimension `dim` whose boundaries nest in those before the move.
    template <class Visit>
    void for_each_shorter(const Expansion& from, const State& state, std::size_t dim, const Visit& visit) const {
        SearchSpace::Shorter shorter;
        frame_.append_shorter(state.lists[dim], shorter);
        for (const List list : shorter)
            if (frame_.nests(dim, frame_.shards(list), from.sides.shards[dim])) visit(list);
    }
    /// visit(next, rest) for every piece of the cover `pool` that can enter dimension `dim`: the state with it, and
    /// what is left of the pool.
    template <class Visit>
    void for_each_entering(const State& state, std::size_t dim, std::uint32_t pool, const Visit& visit) const {
        const Index now = frame_.shards(state.lists[dim]);
        const std::uint32_t clashes = frame_.mixed ? sides_of(state).clashes : 0;
        for (std::uint8_t piece = 0; piece < frame_.pieces.size(); ++piece) {
            const Piece& entering = frame_.pieces[piece];
            if ((entering.cover & ~pool) != 0 || (clashes >> piece & 1) != 0) continue;
            // Ragged tiles may nest in the end that do not on the way.
            if (!frame_.exact && !frame_.nests(dim, now, now * entering.size)) continue;
            State next = state;
            frame_.append(next.lists[dim], piece);
            visit(next, pool & ~entering.cover);
        }
    }
    /// visit(state) for every set of digits, numbered from `first` on, added to the summands.
    template <class Visit>
    void for_each_summands(const State& state, std::uint8_t first, const Visit& visit) const {
        const std::uint32_t clashes = frame_.clashes_of(state.lists[dims()]);
        for (std::uint8_t piece = first; piece < frame_.pieces.size(); ++piece) {
            if ((clashes >> piece & 1) != 0) continue;
            State next = state;
            next.lists[dims()] = with_summand(state.lists[dims()], piece);
            visit(next);
            for_each_summands(next, static_cast<std::uint8_t>(piece + 1), visit);
        }
    }
    /// Calls visit(list) for every choice of pieces, numbered from `first` on, that completes `list` to `cover`.
    template <class Visit>
    void for_each_cut(std::uint32_t cover, List list, std::uint8_t first, const Visit& visit) const {
        if (cover == 0) return visit(list);
        const std::uint32_t clashes = frame_.clashes_of(list);
        for (std::uint8_t piece = first; piece < frame_.pieces.size(); ++piece) {
            const std::uint32_t taken = frame_.pieces[piece].cover;
            if ((taken & ~cover) != 0 || (clashes >> piece & 1) != 0) continue;
            List more = list;
            more.push(piece);
            for_each_cut(cover & ~taken, more, static_cast<std::uint8_t>(piece + 1), visit);
        }
    }
    void append_slices(const Expansion& from) const;
    void append_slices_of(const Expansion& from, State state, std::size_t dim, std::uint32_t clashes) const;
    void append_gathers(const Expansion& from, State state, std::size_t dim) const;
    void append_all_to_alls(const Expansion& from, State state, std::size_t dim) const;
    void deal(const Expansion& from, const State& state, std::size_t dim, std::uint32_t pool) const;
    void append_reductions(const Expansion& from) const;
    void append_reductions(const Expansion& from, List summands) const;
    void append_scatters(const Expansion& from, const State& state, std::size_t dim, std::uint32_t pool) const;
    void append_fills(const Expansion& from) const;
    [[nodiscard]] SummandChange change_to_target(const State& state) const;
    void choose_summands(const State& before, const Sides& sides, State& state, std::uint8_t first,
                         std::vector<Edge>& hops) const;
    void arrange(const State& before, const Sides& sides, State& state, std::size_t dim, Index shards,
                 std::uint32_t clashes, std::vector<Edge>& hops) const;
    void append_finer(const State& state, std::size_t dim, std::uint32_t clashes, std::size_t most,
                      std::vector<State>& states) const;
    [[nodiscard]] Index first_kept(const Sides& before, const Sides& after) const;
    [[nodiscard]] bool all_nest(const Sides& before, const Sides& after) const;
    [[nodiscard]] Index foreign(const State& before, const State& after, bool even, Index in_closed_form) const;
    [[nodiscard]] std::uint32_t idle(std::uint32_t used, std::uint32_t wanted) const;
    [[nodiscard]] std::uint32_t touched(const State& state, const Sides& sides, const State& next,
                                        const Sides& after) const;
    [[nodiscard]] std::size_t dims() const { return frame_.dims(); }
    [[nodiscard]] List with_summand(List list, std::uint8_t piece) const;

    const SearchSpace& frame_;
    const bool grouped_;
    const bool fills_;
    const bool sliced_at_once_;
    const Sides there_;                               ///< of the target
    Index whole_ = 1;                                 ///< elements before any cut
    const std::unique_ptr<MissingElements> foreign_;  ///< where sizes do not divide and all devices can be looked at
};

}  // namespace reshard
