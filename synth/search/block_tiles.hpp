// The elements of a block of devices, counted tile by tile. For blocks that no digits of the search describe.
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "synth/search/space.hpp"

namespace reshard {

/// Tiles of one state are the same or have nothing in common, so what a block has is a sum over its different tiles.
class BlockTiles {
public:
    /// pre: the frame has every digit of its devices.
    explicit BlockTiles(const SearchSpace& frame);

    /// The states that `lacking` is asked about.
    void between(const State& held, const State& wanted);
    /// Elements that devices at these positions want together and none of them holds; whatever their summands.
    [[nodiscard]] Index lacking(std::span<const Index> positions);

private:
    using Numbers = std::vector<Index>;
    // In one dimension, for the states at hand.
    struct Cut {
        const Index* held = nullptr;    // shard of each position
        const Index* wanted = nullptr;  // the same
        const Index* common = nullptr;  // indices of each held and each wanted shard; then of the wanted ones
        Index wanted_shards = 1;
        Index held_shards = 1;
    };
    [[nodiscard]] const Index* shards_of(std::size_t dim, List list);
    [[nodiscard]] const Index* common_of(std::size_t dim, List held, List wanted);
    // One position for each distinct tile.
    void keep_different(std::span<const Index> positions, const Index* Cut::*shards, Numbers& kept) const;

    const SearchSpace& frame_;
    const Index devices_;
    std::vector<Cut> cuts_;
    std::array<std::unordered_map<std::uint32_t, Numbers>, lists_max> shards_;  // by dimension
    std::array<std::unordered_map<std::uint64_t, Numbers>, lists_max> common_;  // by dimension
    Numbers holders_;
    Numbers wanters_;
};

}  // namespace reshard
