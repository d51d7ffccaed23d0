// The cost of a hop under an objective, in the same numbers as the judge's costs (src/price/cost.cpp).
#pragma once

#include "src/price/level_traffic.hpp"
#include "synth/search/expand.hpp"
#include "synth/search/level_needs.hpp"

namespace reshard {

struct LevelSpans;

/// Two costs, compared in order: bytes and moves, moves and bytes, or time and moves.
struct EdgeCost {
    Index first = 0;
    Index second = 0;
    friend auto operator<=>(const EdgeCost&, const EdgeCost&) = default;
    friend EdgeCost operator+(EdgeCost a, EdgeCost b) {
        return {saturating_add(a.first, b.first), saturating_add(a.second, b.second)};
    }
};

/// Up to so many devices are looked at for each move where no closed form holds, in so many moves of a search; beyond,
/// the closed form is an estimate, and the search is not said to be complete.
inline constexpr Index counted_devices_max = 64;
inline constexpr Index counted_moves_max = 2000;
/// The same in a view, which is searched after the problem's own layouts.
inline constexpr Index counted_moves_in_views_max = 400;

class EdgeCosts {
public:
    EdgeCosts(const SearchSpace& frame, Objective objective, const Machine& machine);

    /// The cost of a hop from `before`. `arrives`: it ends at the target, where a slice is charged with the copy of its
    /// tile.
    [[nodiscard]] EdgeCost of(const State& before, const Edge& hop, bool arrives) const;
    /// A lower bound of it that takes no time: all over the fastest level.
    [[nodiscard]] EdgeCost floor_of(const Edge& hop, bool arrives) const;
    /// No less, and takes less time than the cost: what each level carries at least.
    [[nodiscard]] EdgeCost floor_by_levels(const State& before, const Edge& hop, bool arrives) const;
    /// A lower bound of an exchange without its copies, if some device receives at least `received` elements.
    [[nodiscard]] EdgeCost exchange_floor(Index received) const;
    /// Picoseconds of the copies of a move that leaves tiles of `tile` elements.
    [[nodiscard]] Index copies(Index tile) const {
        return transfer_picoseconds(saturating_multiply(tile, element_), machine_.copy_bytes_per_second);
    }
    /// A lower bound for every path whose busiest device receives `elements`, which may be 0 before the target is
    /// reached.
    [[nodiscard]] EdgeCost at_least(Index elements) const;
    /// The same for every path from `state` to the target, no less.
    [[nodiscard]] EdgeCost at_least(const State& state, Index elements) const;
    /// No hop that receives more elements costs less than the difference.
    [[nodiscard]] Index elements_within(EdgeCost paid, EdgeCost below) const;
    /// True if lower bounds include the levels of the network.
    [[nodiscard]] bool by_levels() const { return needs_.has_value(); }
    /// True if prices look at the tiles of all devices, which takes no longer than bounds by levels.
    [[nodiscard]] bool counts_devices() const { return tiles_ && tiles_->counts_moves(); }
    /// True if all prices so far equal the judge's.
    [[nodiscard]] bool exact() const { return exact_; }

private:
    /// A message of so many elements over the fastest level.
    [[nodiscard]] Index message(Index elements) const {
        return saturating_add(first_message_, transfer_picoseconds(saturating_multiply(elements, element_), fastest_));
    }
    [[nodiscard]] Index picoseconds(const State& before, const Edge& hop, bool arrives) const;
    [[nodiscard]] Index tile_of(const State& state) const;  ///< elements
    [[nodiscard]] bool sure(const Edge& hop) const;         ///< some device receives as much
    /// What the runs of its copies cost beside their bytes.
    [[nodiscard]] Index runs(const State& before, const Edge& hop) const;
    /// As Traffic, without allocating.
    struct Carried {
        std::array<Index, levels_max> elements{};
        std::array<Index, levels_max> pair{};
        std::array<Index, levels_max> messages{};
        bool exact = true;  // as the judge counts
    };
    [[nodiscard]] Carried carried(const State& before, const Edge& hop) const;
    bool exchange_traffic(const State& before, const Edge& hop, const LevelSpans& spans) const;
    [[nodiscard]] AtomList atoms_of(std::uint32_t cover) const;
    [[nodiscard]] const LevelMembers& members_of(std::uint32_t group) const;

    const SearchSpace& frame_;
    const Objective objective_;
    const Machine& machine_;
    std::optional<NetworkDigits> network_;  ///< where there is more than the rate of one level
    mutable std::optional<LevelTraffic> traffic_;
    mutable std::optional<DeviceTiles> tiles_;  ///< of few devices, where no digits describe the blocks of the network
    mutable std::optional<LevelNeeds> needs_;
    mutable std::unordered_map<std::uint32_t, LevelMembers> members_;  ///< by group
    const Index element_;
    mutable bool exact_ = true;
    mutable Index counted_ = 0;  ///< moves
    Index last_copy_ = 0;        ///< of the target's tile
    Index first_message_ = 0;    ///< start and latency, the least of all levels
    Index fastest_ = 1;          ///< bytes a second, the most of all levels
};

}  // namespace reshard
