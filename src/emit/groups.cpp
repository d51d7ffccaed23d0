#include "src/emit/groups.hpp"

#include <algorithm>

namespace reshard {

Positions::Positions(const Mesh& own, const Mesh& other)
    : own_(own), other_(other), count_(device_count(own)), same_(same_order(own, other)) {}

Index Positions::to_other(Index position) const {
    return same_ ? position : *position_of(other_, device_at(own_, position));
}

Index Positions::to_own(Index position) const {
    return same_ ? position : *position_of(own_, device_at(other_, position));
}

std::vector<std::vector<Index>> Positions::groups(const AtomList& digits) const {
    const Index size = combinations(digits);
    std::vector<std::vector<Index>> all;
    std::vector<bool> seen(static_cast<std::size_t>(count_));
    for (Index position = 0; position < count_; ++position) {
        if (seen[static_cast<std::size_t>(position)]) continue;
        std::vector<Index>& group = all.emplace_back();
        for (Index value = 0; value < size; ++value) {
            group.push_back(to_own(with_value(digits, to_other(position), value)));
            seen[static_cast<std::size_t>(group.back())] = true;
        }
    }
    return all;
}

std::vector<Index> Positions::where_zero(const AtomList& digits) const {
    std::vector<Index> all;
    for (Index position = 0; position < count_; ++position)
        if (value_of(digits, to_other(position)) == 0) all.push_back(position);
    return all;
}

std::vector<std::vector<Index>> Positions::starts(const std::vector<AtomList>& digits,
                                                  const std::vector<Index>& part) const {
    std::vector<std::vector<Index>> all;
    for (Index position = 0; position < count_; ++position) {
        std::vector<Index>& start = all.emplace_back();
        for (std::size_t i = 0; i < part.size(); ++i)
            start.push_back(value_of(digits[i], to_other(position)) * part[i]);
    }
    return all;
}

std::vector<SourceTargetPair> Positions::of_devices(const std::vector<SourceTargetPair>& pairs) const {
    std::vector<SourceTargetPair> all;
    for (const SourceTargetPair& pair : pairs)
        all.push_back({*position_of(own_, pair.source), *position_of(own_, pair.target)});
    std::ranges::sort(all, {}, &SourceTargetPair::target);
    return all;
}

}  // namespace reshard
