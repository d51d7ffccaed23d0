#include "synth/search/missing_elements.hpp"

#include <algorithm>
#include <cassert>

namespace reshard {

// Most searches meet no ragged tile where the ends divide.
void MissingElements::list_positions() {
    positions_ = {0};
    for (std::size_t bit = 0; bit < frame_.lows.size(); ++bit) {
        const Index low = frame_.lows[bit];
        while (bit + 1 < frame_.lows.size() && frame_.lows[bit + 1] == frame_.highs[bit]) ++bit;
        const std::size_t count = positions_.size();
        for (Index digit = low; digit < frame_.highs[bit]; digit += low)
            for (std::size_t i = 0; i < count; ++i) positions_.push_back(positions_[i] + digit);
    }
}

std::size_t MissingElements::shares(std::size_t dim, List list) {
    const auto [known, added] =
        known_.try_emplace(static_cast<std::uint64_t>(dim) << 32 | list.word(), intervals_.size());
    if (!added) return known->second;
    for (const Index position : positions_) intervals_.push_back(frame_.share(dim, list, number(list, position)));
    return known->second;
}

Index MissingElements::number(List list, Index position) const {
    Index number = 0;
    for (std::size_t j = 0; j < list.size(); ++j) {
        const Piece& piece = frame_.pieces[list[j]];
        number = number * piece.size + position / piece.stride % piece.size;
    }
    return number;
}

Index MissingElements::elements(const State& held, const State& wanted) {
    assert(frame_.exact);
    if (positions_.empty()) list_positions();
    std::array<std::size_t, lists_max> before{};
    std::array<std::size_t, lists_max> after{};
    for (std::size_t i = 0; i < frame_.dims(); ++i) {
        before[i] = shares(i, held.lists[i]);
        after[i] = shares(i, wanted.lists[i]);
    }
    const List summands = held.lists[frame_.dims()];
    const List wanted_summands = wanted.lists[frame_.dims()];
    const bool one_summand = summands == wanted_summands;
    Index most = 0;
    for (std::size_t at = 0; at < positions_.size(); ++at) {
        Index all = 1;
        const bool holds = one_summand || number(summands, positions_[at]) == number(wanted_summands, positions_[at]);
        Index kept = holds ? 1 : 0;
        for (std::size_t i = 0; i < frame_.dims(); ++i) {
            const Interval has = intervals_[before[i] + at];
            const Interval wants = intervals_[after[i] + at];
            all *= wants.end - wants.begin;
            kept *= std::max<Index>(0, std::min(has.end, wants.end) - std::max(has.begin, wants.begin));
        }
        most = std::max(most, all - kept);
    }
    return most;
}

}  // namespace reshard
