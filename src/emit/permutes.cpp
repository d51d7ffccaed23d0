#include "src/emit/permutes.hpp"

#include <algorithm>
#include <optional>

namespace reshard {

namespace {

bool keeps_places(OperationKind kind) {
    return kind == OperationKind::reshape || kind == OperationKind::transpose || kind == OperationKind::reorder;
}

// The groups of positions whose tiles the permute moves to `groups`. Empty if the permute does not know all of them.
std::optional<std::vector<std::vector<Index>>> before(const Operation& permute,
                                                      std::vector<std::vector<Index>> groups) {
    for (std::vector<Index>& group : groups)
        for (Index& member : group) {
            const auto pair = std::ranges::find(permute.pairs, member, &SourceTargetPair::target);
            if (pair == permute.pairs.end()) return std::nullopt;
            member = pair->source;
        }
    return groups;
}

// The last index that the permute at `at` can move to, with all_to_alls renamed. Returns `at` if it stays.
std::size_t rename(std::vector<Operation>& operations, std::size_t at) {
    std::size_t behind = at;
    for (std::size_t i = at + 1; i < operations.size(); ++i) {
        Operation& one = operations[i];
        if (keeps_places(one.kind)) continue;
        if (one.kind != OperationKind::all_to_all) break;
        auto groups = before(operations[at], one.groups);
        if (!groups) break;
        one.groups = std::move(*groups);
        one.digits.clear();
        behind = i;
    }
    while (behind > at && behind + 1 < operations.size() && keeps_places(operations[behind + 1].kind)) ++behind;
    return behind;
}

}  // namespace

void permute_behind_all_to_alls(std::vector<Operation>& operations) {
    for (std::size_t at = operations.size(); at-- > 1;) {
        if (operations[at].kind != OperationKind::permute) continue;
        std::size_t first = at - 1;
        while (first > 0 && keeps_places(operations[first].kind)) --first;
        if (operations[first].kind != OperationKind::slice) continue;
        const std::size_t behind = rename(operations, at);
        if (behind == at) continue;
        const auto begin = operations.begin();
        std::rotate(begin + static_cast<std::ptrdiff_t>(at), begin + static_cast<std::ptrdiff_t>(at) + 1,
                    begin + static_cast<std::ptrdiff_t>(behind) + 1);
        operations[behind].input = operations[behind].output = operations[behind - 1].output;
    }
}

}  // namespace reshard
