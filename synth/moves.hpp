// The typed moves of the vocabulary in digits: every state that one step reaches, with what a device receives.
#pragma once

#include "synth/digits.hpp"

namespace reshard {

/// One step in digits. `received` in elements, at most, over devices.
struct Hop {
    StepKind kind = StepKind::slice;
    State state;
    Index received = 0;
};

/// Sizes of one state, and the moves out of it. Slices and reduce_scatters are given one digit at a time: their bytes
/// add up, and `shortcut` fuses them. The other kinds are given as wide as they come.
class Moves {
public:
    explicit Moves(const Frame& frame) : frame_(frame) {}

    /// At least this is received by the busiest device on any way from `state` to the target (theorem
    /// heuristic_admissible; the incomparable case is lower_bound_incomparable).
    [[nodiscard]] Index least_to_target(const State& state) const;
    /// The sizes of the tile's sides and of the summands: what a permute keeps.
    [[nodiscard]] std::uint64_t shape_code(const State& state) const;

    /// Appends every move out of `state` whose tile has at most `tile_max` elements, permutes excepted.
    void append_moves(const State& state, Index tile_max, std::vector<Hop>& hops) const;
    /// Appends every permute of `state` that keeps the unreduced axes.
    void append_permutes(const State& state, std::vector<Hop>& hops) const;

private:
    struct Sides;
    [[nodiscard]] Sides sides_of(const State& state) const;
    void append_slices(const State& state, const Sides& sides, std::vector<Hop>& hops) const;
    void append_gathers(State state, std::size_t dim, const Sides& sides, Index tile_max, std::vector<Hop>& hops) const;
    void append_all_to_alls(State state, std::size_t dim, const Sides& sides, Index tile_max,
                            std::vector<Hop>& hops) const;
    void deal(const State& state, std::size_t dim, std::uint32_t pool, const Sides& before, Index tile_max,
              std::vector<Hop>& hops) const;
    void append_reductions(const State& state, const Sides& sides, std::vector<Hop>& hops) const;
    void append_fills(const State& state, const Sides& sides, Index tile_max, std::vector<Hop>& hops) const;
    void arrange(State& state, std::size_t dim, Index shards, const Sides& before, std::uint32_t pool,
                 std::vector<Hop>& hops) const;
    [[nodiscard]] bool nests(std::size_t dim, Index fewer,
                             Index more) const;  // tiles of `more` shards in those of `fewer`
    [[nodiscard]] Index size(std::uint8_t digit) const { return frame_.digits[digit].size; }
    [[nodiscard]] Index shards(const State::List& list) const;
    [[nodiscard]] std::size_t dims() const { return frame_.lists - 1; }
    [[nodiscard]] std::uint32_t all_digits() const { return (1u << frame_.digits.size()) - 1; }

    const Frame& frame_;
};

}  // namespace reshard
