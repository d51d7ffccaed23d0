// The elements of a block of devices, counted tile by tile. For blocks that no digits of the search describe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "synth/search/space.hpp"

namespace reshard {

/// Tiles of one state are the same or have nothing in common, so what a block has is a sum over its different tiles.
class BlockTiles {
public:
    using Blocks = std::vector<std::vector<Index>>;  ///< the positions of the devices of each block

    /// pre: the frame has every digit of its devices, and these are at most `devices_max`.
    explicit BlockTiles(const SearchSpace& frame);
    static constexpr Index devices_max = 64;

    /// The states that `lacking` is asked about. `blocks` are the same in each call.
    void between(const State& held, const State& wanted, const Blocks& blocks);
    /// Elements that the devices of this block want together and none of them holds; whatever their summands.
    [[nodiscard]] Index lacking(std::size_t block) const;

private:
    using Numbers = std::vector<Index>;
    // The different tiles of each block, by the numbers of their shards in each dimension.
    struct Tiles {
        Numbers shards;
        std::vector<std::size_t> ends;  // behind the last number of each block
        [[nodiscard]] std::span<const Index> of(std::size_t block) const {
            const std::size_t first = block == 0 ? 0 : ends[block - 1];
            return std::span(shards).subspan(first, ends[block] - first);
        }
    };
    // A dimension that some state at hand cuts.
    struct Cut {
        std::size_t dim = 0;
        const Index* common = nullptr;  // for each wanted shard: indices that each held shard has of it
        const Index* wants = nullptr;   // indices of each wanted shard
        Index held_shards = 1;
    };
    [[nodiscard]] const Tiles& tiles_of(const State& state, const Blocks& blocks);
    [[nodiscard]] const Index* common_of(std::size_t dim, List held, List wanted);

    const SearchSpace& frame_;
    State held_;  // the states at hand
    State wanted_;
    const Tiles* holders_ = nullptr;
    const Tiles* wanters_ = nullptr;
    Index whole_ = 1;  // elements of the dimensions that neither cuts
    InlineVector<Cut, lists_max> cuts_;
    std::unordered_map<std::uint64_t, Tiles> tiles_;                            // by state
    std::array<std::unordered_map<std::uint64_t, Numbers>, lists_max> common_;  // by dimension
};

}  // namespace reshard
