#include "src/price/tiles/contact.hpp"

#include <utility>

namespace reshard {

Contact::Contact(const Dim& before, const Dim& after)
    : regular_(before.pieces.empty() && after.pieces.empty()),
      most_(std::max<Index>(std::min(block_extent(before), block_extent(after)), 1)) {
    if (regular_) {
        held_.cut = RegularCut(before);
        wanted_.cut = RegularCut(after);
        return;
    }
    const std::vector<Dim::Piece> held = pieces_of(before);
    const std::vector<Dim::Piece> wanted = pieces_of(after);
    std::vector<Pair> pairs;
    Index begin = 0;
    for (std::size_t i = 0, j = 0; i < held.size() && j < wanted.size();) {
        const Index end = std::min(held[i].end, wanted[j].end);
        pairs.push_back({held[i].shard, wanted[j].shard, end - begin});
        begin = end;
        if (held[i].end == end) ++i;
        if (wanted[j].end == end) ++j;
    }
    list(held_, shard_count(before), pairs);
    for (Pair& pair : pairs) std::swap(pair.one, pair.other);
    list(wanted_, shard_count(after), std::move(pairs));
}

// Two tiles may meet in several places.
void Contact::list(End& end, Index tiles, std::vector<Pair> pairs) {
    std::ranges::sort(pairs, {}, [](const Pair& pair) { return std::pair(pair.one, pair.other); });
    end.sizes.resize(static_cast<std::size_t>(tiles));
    end.begins.push_back(0);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto one = static_cast<std::size_t>(pairs[i].one);
        end.begins.resize(std::max(end.begins.size(), one + 1), end.met.size());
        const bool again = i > 0 && pairs[i - 1].one == pairs[i].one && pairs[i - 1].other == pairs[i].other;
        if (again)
            end.met.back().indices += pairs[i].indices;
        else
            end.met.push_back({pairs[i].other, pairs[i].indices});
        end.sizes[one] += pairs[i].indices;
    }
    end.begins.resize(static_cast<std::size_t>(tiles) + 1, end.met.size());
}

}  // namespace reshard
