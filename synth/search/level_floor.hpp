// The least time of the levels of a network, from the elements that blocks of devices lack.
#pragma once

#include <algorithm>
#include <array>

#include "reshard/planner/cost.hpp"
#include "synth/search/inline_vector.hpp"

namespace reshard {

/// The most network levels that a search prices.
inline constexpr std::size_t levels_max = 16;

/// Elements enter a block of devices over its level or over a level beyond it. Blocks that share a connection farther
/// out are one unit, and their missing elements add up.
class LevelFloor {
public:
    /// `inside`: by level, the devices of the mesh in one block of the level inside it; 1 for level 0.
    LevelFloor(const Machine& machine, InlineVector<Index, levels_max> inside, Index element_bytes);

    /// False if an outer level is faster than an inner one: then a level may carry more than it must.
    [[nodiscard]] bool known() const { return known_; }
    /// The level that has the units of a level's blocks inside it.
    [[nodiscard]] std::size_t unit_level(std::size_t level) const { return std::max(level, unit_); }
    /// Devices of such a unit.
    [[nodiscard]] Index unit_devices(std::size_t level) const { return inside_[unit_level(level)]; }

    /// A lower bound in picoseconds. `entering(level)`: the elements that the unit with the most of them lacks, added
    /// up over its blocks. Each level beyond carries as little as it must. Loads are whole elements only if every level
    /// brings the same amount to a unit.
    template <class Entering>
    [[nodiscard]] Index picoseconds(const Entering& entering) const {
        std::array<Index, levels_max> load{};
        Index time = 0;
        for (std::size_t level = inside_.size(); level-- > 0;) {
            Index rest = entering(level);
            for (std::size_t outer = level + 1; outer < inside_.size(); ++outer)
                rest -= std::min(rest, scale_up(load[outer], carries_[outer][level], carries_[outer][outer]));
            if (rest == 0) continue;
            if (time == 0) time = first_[level];
            const Index units = carries_[level][level];
            load[level] = whole_ ? ceil_divide(rest, units) * units : rest;
            const Index taken =
                transfer_picoseconds(saturating_multiply(load[level], element_),
                                     saturating_multiply(machine_.levels[level].bytes_per_second, units));
            time = saturating_add(time, whole_ ? taken : std::max<Index>(taken - 1, 0));
        }
        return time;
    }

private:
    [[nodiscard]] bool rises() const;

    const Machine& machine_;
    const InlineVector<Index, levels_max> inside_;
    const Index element_;
    std::size_t unit_ = 0;  // the outermost level whose blocks share a connection
    bool whole_ = true;     // each level brings a unit as much as any other
    bool known_ = true;
    // By level and a level inside it: elements that a unit of the inner blocks brings in at most while the level
    // carries one.
    std::array<std::array<Index, levels_max>, levels_max> carries_{};
    std::array<Index, levels_max> first_{};  // by level: start and latency, the least of it and those beyond
};

}  // namespace reshard
