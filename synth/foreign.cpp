#include "synth/foreign.hpp"

#include <algorithm>

namespace reshard {

Foreign::Foreign(const Frame& frame) : frame_(frame), positions_{0} {
    for (std::size_t bit = 0; bit < frame.lows.size(); ++bit) {
        const Index low = frame.lows[bit];
        while (bit + 1 < frame.lows.size() && frame.lows[bit + 1] == frame.highs[bit]) ++bit;
        const std::size_t count = positions_.size();
        for (Index digit = low; digit < frame.highs[bit]; digit += low)
            for (std::size_t i = 0; i < count; ++i) positions_.push_back(positions_[i] + digit);
    }
}

const Interval* Foreign::shares(std::size_t dim, List list) {
    std::vector<Interval>& intervals = known_[static_cast<std::uint64_t>(dim) << 32 | list.word()];
    if (!intervals.empty()) return intervals.data();
    const Index extent = frame_.extents[dim];
    const Index size = ceil_divide(extent, frame_.shards(list));
    intervals.reserve(positions_.size());
    for (const Index position : positions_) {
        Index shard = 0;
        for (std::size_t j = 0; j < list.size(); ++j) {
            const Piece& piece = frame_.pieces[list[j]];
            shard = shard * piece.size + position / piece.stride % piece.size;
        }
        const Index begin = std::min(extent, saturating_multiply(shard, size));
        intervals.push_back({begin, std::min(extent, saturating_add(begin, size))});
    }
    return intervals.data();
}

Index Foreign::elements(const State& held, const State& wanted) {
    std::array<const Interval*, lists_max> before{};
    std::array<const Interval*, lists_max> after{};
    for (std::size_t i = 0; i < frame_.dims(); ++i) {
        before[i] = shares(i, held.lists[i]);
        after[i] = shares(i, wanted.lists[i]);
    }
    Index most = 0;
    for (std::size_t at = 0; at < positions_.size(); ++at) {
        Index all = 1;
        Index kept = 1;
        for (std::size_t i = 0; i < frame_.dims(); ++i) {
            const Interval has = before[i][at];
            const Interval wants = after[i][at];
            all *= wants.end - wants.begin;
            kept *= std::max<Index>(0, std::min(has.end, wants.end) - std::max(has.begin, wants.begin));
        }
        most = std::max(most, all - kept);
    }
    return most;
}

}  // namespace reshard
