#include "synth/search/block_tiles.hpp"

#include <algorithm>

namespace reshard {

BlockTiles::BlockTiles(const SearchSpace& frame)
    : frame_(frame), devices_(device_count(frame.like->mesh)), cuts_(frame.dims()) {}

void BlockTiles::between(const State& held, const State& wanted) {
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
        const List before = held.lists[i];
        const List after = wanted.lists[i];
        cuts_[i] = {shards_of(i, before), shards_of(i, after), common_of(i, before, after), frame_.shards(after),
                    frame_.shards(before)};
    }
}

Index BlockTiles::lacking(std::span<const Index> positions) {
    keep_different(positions, &Cut::held, holders_);
    keep_different(positions, &Cut::wanted, wanters_);
    Index lacks = 0;
    for (const Index wanter : wanters_) {
        Index wants = 1;
        for (const Cut& cut : cuts_) wants *= cut.common[cut.held_shards * cut.wanted_shards + cut.wanted[wanter]];
        lacks += wants;
        for (const Index holder : holders_) {
            Index has = 1;
            for (const Cut& cut : cuts_) has *= cut.common[cut.held[holder] * cut.wanted_shards + cut.wanted[wanter]];
            lacks -= has;
        }
    }
    return lacks;
}

void BlockTiles::keep_different(std::span<const Index> positions, const Index* Cut::*shards, Numbers& kept) const {
    kept.clear();
    for (const Index position : positions) {
        const auto same = [&](Index other) {
            return std::ranges::all_of(cuts_,
                                       [&](const Cut& cut) { return (cut.*shards)[position] == (cut.*shards)[other]; });
        };
        if (std::ranges::none_of(kept, same)) kept.push_back(position);
    }
}

const Index* BlockTiles::shards_of(std::size_t dim, List list) {
    const auto [known, added] = shards_[dim].try_emplace(list.word());
    for (Index position = 0; added && position < devices_; ++position) {
        Index shard = 0;
        for (std::size_t j = 0; j < list.size(); ++j) {
            const Piece& piece = frame_.pieces[list[j]];
            shard = shard * piece.size + position / piece.stride % piece.size;
        }
        known->second.push_back(shard);
    }
    return known->second.data();
}

const Index* BlockTiles::common_of(std::size_t dim, List held, List wanted) {
    const std::uint64_t both = static_cast<std::uint64_t>(held.word()) << 32 | wanted.word();
    const auto [known, added] = common_[dim].try_emplace(both);
    if (!added) return known->second.data();
    std::vector<Interval> parts;
    for (Index shard = 0; shard < frame_.shards(wanted); ++shard) parts.push_back(frame_.share(dim, wanted, shard));
    for (Index shard = 0; shard < frame_.shards(held); ++shard) {
        const Interval mine = frame_.share(dim, held, shard);
        for (const Interval& part : parts)
            known->second.push_back(
                std::max<Index>(0, std::min(mine.end, part.end) - std::max(mine.begin, part.begin)));
    }
    for (const Interval& part : parts) known->second.push_back(std::max<Index>(0, part.size()));
    return known->second.data();
}

}  // namespace reshard
