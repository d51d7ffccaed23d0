#include "synth/search/block_tiles.hpp"

#include <algorithm>

namespace reshard {

BlockTiles::BlockTiles(const SearchSpace& frame) : frame_(frame) {}

void BlockTiles::between(const State& held, const State& wanted, const Blocks& blocks) {
    if (holders_ != nullptr && held_ == held && wanted_ == wanted) return;
    held_ = held;
    wanted_ = wanted;
    holders_ = &tiles_of(held, blocks);
    wanters_ = &tiles_of(wanted, blocks);
    whole_ = 1;
    cuts_.clear();
    for (std::size_t i = 0; i < frame_.dims(); ++i) {
        if (held.lists[i].empty() && wanted.lists[i].empty()) {
            whole_ *= frame_.extents[i];
            continue;
        }
        const Index held_shards = frame_.shards(held.lists[i]);
        const Index* common = common_of(i, held.lists[i], wanted.lists[i]);
        cuts_.push_back({i, common, common + held_shards * frame_.shards(wanted.lists[i]), held_shards});
    }
}

Index BlockTiles::lacking(std::size_t block) const {
    const std::size_t dims = frame_.dims();
    const std::span<const Index> holders = holders_->of(block);
    const std::span<const Index> wanters = wanters_->of(block);
    Index lacks = 0;
    std::array<const Index*, lists_max> common{};  // of the wanted tile at hand, by cut
    for (const Index* wanter = wanters.data(); wanter != wanters.data() + wanters.size(); wanter += dims) {
        Index wants = whole_;
        for (std::size_t i = 0; i < cuts_.size(); ++i) {
            const Cut& cut = cuts_[i];
            wants *= cut.wants[wanter[cut.dim]];
            common[i] = cut.common + wanter[cut.dim] * cut.held_shards;
        }
        lacks += wants;
        for (const Index* holder = holders.data(); holder != holders.data() + holders.size(); holder += dims) {
            Index has = whole_;
            for (std::size_t i = 0; i < cuts_.size() && has > 0; ++i) has *= common[i][holder[cuts_[i].dim]];
            lacks -= has;
        }
    }
    return lacks;
}

// Tiles are no more than devices, so one bit a tile says which of them a block has already.
const BlockTiles::Tiles& BlockTiles::tiles_of(const State& state, const Blocks& blocks) {
    const auto [known, added] = tiles_.try_emplace(state.code(frame_.lists));
    Tiles& tiles = known->second;
    if (!added) return tiles;
    tiles.ends.reserve(blocks.size());
    std::array<Index, lists_max> shards{};
    for (const std::vector<Index>& block : blocks) {
        std::uint64_t seen = 0;
        for (const Index position : block) {
            Index tile = 0;
            for (std::size_t i = 0; i < frame_.dims(); ++i) {
                const List list = state.lists[i];
                shards[i] = 0;
                for (std::size_t j = 0; j < list.size(); ++j) {
                    const Piece& piece = frame_.pieces[list[j]];
                    shards[i] = shards[i] * piece.size + position / piece.stride % piece.size;
                }
                tile = tile * frame_.shards(list) + shards[i];
            }
            const std::uint64_t bit = std::uint64_t{1} << tile;
            if ((seen & bit) == 0)
                tiles.shards.insert(tiles.shards.end(), shards.data(), shards.data() + frame_.dims());
            seen |= bit;
        }
        tiles.ends.push_back(tiles.shards.size());
    }
    return tiles;
}

// Cuts at once depend on nothing but the number of shards.
const Index* BlockTiles::common_of(std::size_t dim, List held, List wanted) {
    const auto cut = [&](List list) {
        return frame_.by_turns ? std::uint64_t{list.word()} : static_cast<std::uint64_t>(frame_.shards(list));
    };
    const auto [known, added] = common_[dim].try_emplace(cut(held) << 32 | cut(wanted));
    if (!added) return known->second.data();
    std::vector<Interval> parts;
    for (Index shard = 0; shard < frame_.shards(held); ++shard) parts.push_back(frame_.share(dim, held, shard));
    Numbers wants;
    for (Index shard = 0; shard < frame_.shards(wanted); ++shard) {
        const Interval mine = frame_.share(dim, wanted, shard);
        wants.push_back(std::max<Index>(0, mine.size()));
        for (const Interval& part : parts)
            known->second.push_back(
                std::max<Index>(0, std::min(mine.end, part.end) - std::max(mine.begin, part.begin)));
    }
    known->second.insert(known->second.end(), wants.begin(), wants.end());
    return known->second.data();
}

}  // namespace reshard
