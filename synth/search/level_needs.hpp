// The elements that blocks of a network lack between two states. Its levels carry at least that much, by any steps.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "reshard/planner/cost.hpp"
#include "src/price/network_digits.hpp"
#include "synth/search/device_tiles.hpp"
#include "synth/search/level_floor.hpp"

namespace reshard {

/// Counts for each block of devices of each level. No two dimensions share a digit, so the elements of a block are a
/// product over dimensions, and each factor is computed once. Blocks that no digits describe are counted tile by tile.
class LevelNeeds {
public:
    /// Knows nothing in four cases: tiles differ in shape and are not looked at one by one; too many devices; no digits
    /// describe the blocks and some digit is left out; an outer level is faster than an inner one.
    /// `tiles`: of few devices; else null.
    LevelNeeds(const SearchSpace& frame, const Machine& machine, const NetworkDigits& network, DeviceTiles* tiles);

    /// A lower bound in picoseconds for the levels, over all steps from `held` to `wanted`, if some device receives
    /// `received` elements.
    [[nodiscard]] Index picoseconds(const State& held, const State& wanted, Index received);
    [[nodiscard]] bool known() const { return !borders_.empty(); }

private:
    // The border between blocks of devices, counted in devices that the search's digits tell apart. Units are as in
    // LevelFloor.
    struct Border {
        std::size_t first = 0;          // its first block among all
        std::vector<std::size_t> ends;  // behind the last block of each unit
        Index times = 1;                // units of devices have as many times what these have
        std::vector<bool> tells;        // by piece: its digits tell blocks apart
    };
    // The indices of a dimension in each block: disjoint intervals, ascending.
    struct Unions {
        std::vector<Interval> intervals;
        std::vector<std::size_t> ends;  // one past the last interval of each block
    };
    using Counts = std::vector<Index>;  // by block

    [[nodiscard]] Index devices_inside(std::size_t level) const;
    [[nodiscard]] Index entering(std::size_t level, const State& held, const State& wanted);
    [[nodiscard]] Index entering_tiles(std::size_t level, const State& held, const State& wanted);
    [[nodiscard]] const Index* common(std::size_t dim, List held, List wanted);
    [[nodiscard]] const Unions& unions(std::size_t dim, List list);

    const SearchSpace& frame_;
    const Machine& machine_;
    const NetworkDigits& network_;
    const Index element_;
    DeviceTiles* tiles_ = nullptr;               // where no digits tell blocks
    std::vector<DeviceSet> blocks_;              // then the devices of each block
    std::vector<Border> borders_;                // by level: what comes in over it and those beyond
    std::vector<std::vector<Index>> positions_;  // of each block, of all levels one after another
    std::array<std::unordered_map<std::uint32_t, Unions>, lists_max> unions_;  // by dimension
    std::array<std::unordered_map<std::uint64_t, Counts>, lists_max> common_;  // by dimension
    std::optional<LevelFloor> floor_;
};

}  // namespace reshard
