#include "synth/search/edge_cost.hpp"

#include <algorithm>

namespace reshard {

EdgeCosts::EdgeCosts(const SearchSpace& frame, Objective objective, const Machine& machine)
    : frame_(frame), objective_(objective), machine_(machine), element_(size_of(frame.like->dtype)) {
    if (objective != Objective::time) return;
    Index tile = 1;
    for (std::size_t i = 0; i < frame.dims(); ++i)
        tile = saturating_multiply(tile, ceil_divide(frame.extents[i], frame.shards(frame.target.lists[i])));
    last_copy_ = transfer_picoseconds(saturating_multiply(tile, element_), machine.copy_bytes_per_second);
    first_message_ = index_max;
    for (const Level& level : machine.levels) {
        first_message_ = std::min(first_message_, saturating_add(level.start_ps, level.latency_ps));
        fastest_ = std::max(fastest_, level.bytes_per_second);
    }
}

EdgeCost EdgeCosts::of(const State& before, const Edge& hop, bool arrives) const {
    const Index moves = is_local(hop.kind) ? 0 : 1;
    switch (objective_) {
        case Objective::time:
            return {picoseconds(before, hop, arrives), moves};
        case Objective::bytes:
            return {hop.received, moves};
        case Objective::steps:
            break;
    }
    return {moves, hop.received};
}

EdgeCost EdgeCosts::at_least(Index elements) const {
    const Index moves = elements > 0 ? 1 : 0;
    switch (objective_) {
        case Objective::time:
            if (moves == 0) return {last_copy_, 0};
            return {saturating_add(saturating_add(last_copy_, first_message_),
                                   transfer_picoseconds(saturating_multiply(elements, element_), fastest_)),
                    1};
        case Objective::bytes:
            return {elements, moves};
        case Objective::steps:
            break;
    }
    return {moves, elements};
}

// As members_within in src/plan/cost.cpp.
Index EdgeCosts::members_within(std::uint32_t group, Index devices) const {
    Index members = 1;
    for (std::size_t bit = 0; group >> bit != 0; ++bit) {
        if ((group >> bit & 1) == 0) continue;
        const Index low = frame_.lows[bit];
        if (low >= devices) break;
        while ((group >> (bit + 1) & 1) != 0 && frame_.lows[bit + 1] == frame_.highs[bit]) ++bit;
        members *= std::min(frame_.highs[bit] / low, ceil_divide(devices, low));
    }
    return members;
}

// As level_loads.
void EdgeCosts::exchange_loads(const State& before, const Edge& hop, std::span<Index> loads) const {
    std::uint32_t used = 0;
    std::uint32_t wanted = 0;
    for (std::size_t i = 0; i < frame_.lists; ++i) {
        used |= frame_.cover_of(before.lists[i]);
        wanted |= frame_.cover_of(hop.state.lists[i]);
    }
    for (const LevelTraffic::End end : {LevelTraffic::End::receiver, LevelTraffic::End::sender}) {
        const bool receives = end == LevelTraffic::End::receiver;
        // Replicas share the work, so that their senders are no busier than the receivers.
        if (!receives && (wanted & ~used) != 0) break;
        LevelTraffic travel(end);
        for (std::size_t i = 0; i < frame_.dims(); ++i) {
            const auto far = frame_.merged((receives ? before : hop.state).lists[i]);
            const auto near = frame_.merged((receives ? hop.state : before).lists[i]);
            travel.match({far.begin(), far.size()}, {near.begin(), near.size()});
        }
        const std::uint32_t stripes = receives ? wanted & ~used : used & ~wanted;
        for (std::size_t bit = 0; bit < frame_.lows.size(); ++bit) {
            const Atom digit{frame_.highs[bit] / frame_.lows[bit], frame_.lows[bit]};
            if ((stripes >> bit & 1) != 0) travel.stripe({&digit, 1});
        }
        const List summands = (receives ? before : hop.state).lists[frame_.dims()];
        if (before.lists[frame_.dims()] != hop.state.lists[frame_.dims()]) {
            const auto scattered = frame_.merged(summands);
            travel.scatter({scattered.begin(), scattered.size()});
        }
        travel.raise(hop.tile, machine_, loads);
    }
}

Index EdgeCosts::picoseconds(const State& before, const Edge& hop, bool arrives) const {
    if (hop.kind == StepKind::slice) return arrives ? last_copy_ : 0;
    Index time = transfer_picoseconds(saturating_multiply(hop.tile, element_), machine_.copy_bytes_per_second);
    if (is_local(hop.kind)) return time;
    const Index load = std::max(hop.received, hop.sent);
    if (load == 0) return time;
    const Index others = std::max<Index>(hop.group_size - 1, 1);
    const std::size_t levels = machine_.levels.size();
    InlineVector<Index, levels_max> members;
    Index inside = 1;
    for (std::size_t i = 0; i < levels; ++i) {
        const Index within = i + 1 == levels ? hop.group_size : members_within(hop.group, machine_.levels[i].devices);
        members.push_back(std::max<Index>(within - inside, 0));
        inside = std::max(inside, within);
    }
    const bool permute = hop.kind == StepKind::permute;
    const bool exchange = hop.kind == StepKind::exchange && levels > 1;
    std::array<Index, levels_max> loads{};
    if (exchange) exchange_loads(before, hop, std::span(loads.data(), levels));
    bool carried = false;
    for (std::size_t i = members.size(); i-- > 0;) {
        if (exchange ? loads[i] == 0 : members[i] == 0 || (permute && carried)) continue;
        carried = true;
        const Level& level = machine_.levels[i];
        const bool all = permute || members[i] == others;
        const Index part = exchange ? loads[i] : all ? load : scale_up(load, members[i], others);
        const Index messages =
            std::max<Index>(1, members[i] == others ? hop.messages : scale_up(hop.messages, members[i], others));
        const Index sharers = level.shared && i > 0 ? machine_.levels[i - 1].devices : 1;
        const Index bytes = saturating_multiply(saturating_multiply(part, element_), sharers);
        time = saturating_add(time, saturating_add(level.start_ps, saturating_multiply(messages, level.latency_ps)));
        time = saturating_add(time, transfer_picoseconds(bytes, level.bytes_per_second));
    }
    return time;
}

}  // namespace reshard
