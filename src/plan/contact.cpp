#include "src/plan/contact.hpp"

#include <algorithm>
#include <utility>

namespace reshard {

Meetings::Meetings(Index tiles, std::span<const Pair> pairs) : begins_(static_cast<std::size_t>(tiles) + 1) {
    met_.reserve(pairs.size());
    for (const Pair& pair : pairs) {
        ++begins_[static_cast<std::size_t>(pair.one) + 1];
        met_.push_back({pair.other, pair.indices});
    }
    for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
}

Index met_in(std::span<const Met> list, Index tile) {
    if (list.empty() || tile < list.front().tile || tile > list.back().tile) return 0;
    const auto offset = static_cast<std::size_t>(tile - list.front().tile);
    if (list.back().tile - list.front().tile + 1 == std::ssize(list)) return list[offset].indices;
    const auto found = std::ranges::lower_bound(list, tile, {}, &Met::tile);
    return found->tile == tile ? found->indices : 0;
}

namespace {

using Pair = Meetings::Pair;

// By tile after and tile before. Cuts at stated places may bring two tiles together in several places.
std::vector<Pair> pairs_of(const Dim& before, const Dim& after) {
    const std::vector<Dim::Piece> held = pieces_of(before);
    const std::vector<Dim::Piece> wanted = pieces_of(after);
    std::vector<Pair> pairs;
    pairs.reserve(held.size() + wanted.size());
    Index begin = 0;
    for (std::size_t i = 0, j = 0; i < held.size() && j < wanted.size();) {
        const Index end = std::min(held[i].end, wanted[j].end);
        if (end > begin) pairs.push_back({wanted[j].shard, held[i].shard, end - begin});
        begin = end;
        if (held[i].end == end) ++i;
        if (wanted[j].end == end) ++j;
    }
    const auto order = [](const Pair& pair) { return std::pair(pair.one, pair.other); };
    if (before.pieces.empty() && after.pieces.empty()) return pairs;
    std::ranges::sort(pairs, {}, order);
    std::vector<Pair> merged;
    for (const Pair& pair : pairs) {
        if (!merged.empty() && order(merged.back()) == order(pair))
            merged.back().indices += pair.indices;
        else
            merged.push_back(pair);
    }
    return merged;
}

}  // namespace

Contact::Contact(const Dim& before, const Dim& after) : nested(before.pieces.empty() && after.pieces.empty()) {
    std::vector<Pair> pairs = pairs_of(before, after);
    held_sizes.resize(static_cast<std::size_t>(shard_count(before)));
    wanted_sizes.resize(static_cast<std::size_t>(shard_count(after)));
    for (const Pair& pair : pairs) {
        most = std::max(most, pair.indices);
        wanted_sizes[static_cast<std::size_t>(pair.one)] += pair.indices;
        held_sizes[static_cast<std::size_t>(pair.other)] += pair.indices;
    }
    wanted = Meetings(std::ssize(wanted_sizes), pairs);
    for (Pair& pair : pairs) std::swap(pair.one, pair.other);
    if (!nested) std::ranges::sort(pairs, {}, [](const Pair& pair) { return std::pair(pair.one, pair.other); });
    held = Meetings(std::ssize(held_sizes), pairs);
}

}  // namespace reshard
