// Prices that the judge and the search share: a group's traffic by level in closed form, and the time of a level.
#pragma once

#include "reshard/planner/cost.hpp"
#include "src/price/carried.hpp"
#include "src/price/network_digits.hpp"

namespace reshard {

/// As Traffic, in memory of the caller: one entry per level in each.
struct LevelSpans {
    std::span<Index> elements;
    std::span<Index> pair;
    std::span<Index> messages;
};

/// Spreads the messages of a move over the levels by the members of its group that each reaches; one at least where
/// something goes over it. pre: out.elements is set.
inline void spread_messages(const LevelMembers& members, Index group_size, Index messages, const LevelSpans& out) {
    const Index others = std::max<Index>(group_size - 1, 1);
    for (std::size_t i = 0; i < out.messages.size(); ++i)
        out.messages[i] =
            out.elements[i] == 0 ? 0 : std::max<Index>(1, scale_up(messages, members.of_device[i], others));
}

/// The load of a collective in which each member has an equal part for each other member. `load` is the elements for
/// all of them together. An all_reduce carries twice `load`, in as many parts as there are members.
inline void spread_load(const LevelMembers& members, const Machine& machine, Index group_size, StepKind kind,
                        Index load, const LevelSpans& out) {
    const bool sums = kind == StepKind::all_reduce;
    const Index parts = sums ? group_size : std::max<Index>(group_size - 1, 1);
    const Index all = sums ? saturating_multiply(2, load) : load;
    for (std::size_t i = 0; i < out.elements.size(); ++i) {
        const bool shared = i > 0 && machine.levels[i].shared;
        out.elements[i] = scale_up(all, shared ? members.of_block[i] : members.of_device[i], parts);
        out.pair[i] = members.of_device[i] == 0 ? 0 : ceil_divide(all, parts);
    }
}

/// Start, messages and bytes, by device or by pair, whichever take longer; nothing where nothing goes.
[[nodiscard]] inline Index level_picoseconds(const Level& level, Index elements, Index pair, Index messages,
                                             Index element_bytes) {
    if (elements == 0) return 0;
    const auto seconds = [&](Index count, Index rate) {
        return rate == 0 ? 0 : transfer_picoseconds(saturating_multiply(count, element_bytes), rate);
    };
    const Index waits = saturating_multiply(std::max<Index>(messages, 1), level.latency_ps);
    return saturating_add(saturating_add(level.start_ps, waits),
                          std::max(seconds(elements, std::max<Index>(level.bytes_per_second, 1)),
                                   seconds(pair, level.pair_bytes_per_second)));
}

}  // namespace reshard
