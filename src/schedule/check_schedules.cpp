// The judge of schedules. It uses only tiles, summands and boxes, and nothing from the code that makes schedules.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "reshard/planner/schedule.hpp"
#include "src/base/try.hpp"
#include "src/tables/step_kinds.hpp"

namespace reshard {

namespace {

std::string print(const Box& box) {
    std::string text;
    for (const Interval& side : box) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", side.begin, side.end);
    return "[" + text + "]";
}

bool overlap(const Box& a, const Box& b) { return count(intersect(a, b)) > 0; }

// True if the boxes, all inside `whole`, cover each element once.
bool partitions(const Tile& whole, const std::vector<Box>& boxes) {
    Index elements = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        elements += count(boxes[i]);
        for (std::size_t j = 0; j < i; ++j)
            if (overlap(boxes[i], boxes[j])) return false;
    }
    return elements == count(whole);
}

struct Judge {
    const Layout& before;
    const Step& step;
    const Move& move;
    const std::vector<Schedule>& schedules;

    const Layout& after() const { return step.layout; }
    bool adds() const { return reduces(step.kind); }
    bool fills() const { return reshard::fills(step.kind); }

    static tl::unexpected<Error> against(Index rank, const std::string& why) {
        return fail(Code::plan, fmt::format("schedule of rank {}: {}", rank, why));
    }

    // A box's sender must hold it, with a summand that belongs to the receiver's. In a zero_fill one replica keeps its
    // values, the same one in every group. Otherwise devices that replicate a summand would hold different values.
    bool holds(Index peer, Index rank, const Box& box) const {
        if (!position_of(before.mesh, peer) || !contains(tile(before, peer), box)) return false;
        if (fills())
            return peer == rank && value_of(spread_atoms(before, after()), *position_of(before.mesh, rank)) == 0;
        if (adds()) return summand(after(), peer) == summand(after(), rank);
        return summand(before, peer) == summand(after(), rank);
    }

    Result<void> ends(const Schedule& schedule) const {
        const Index rank = schedule.rank;
        const Combine combine = adds() ? combine_of(before.reduction) : Combine::copy;
        if (schedule.kind != step.kind || schedule.combine != combine)
            return against(rank, "wrong kind or combination");
        if (fills() && schedule.identity != combine_of(after().reduction))
            return against(rank, "fills with the identity of another reduction");
        RESHARD_CHECK(scales(schedule));
        if (schedule.source_tile != tile(before, rank)) return against(rank, "wrong source tile");
        if (schedule.target_tile != tile(after(), rank)) return against(rank, "wrong target tile");
        for (const Transfer& send : schedule.sends)
            if (send.peer == rank || !position_of(after().mesh, send.peer) || count(send.box) == 0 ||
                !contains(schedule.source_tile, send.box))
                return against(rank, fmt::format("sends {} to {}, which it does not hold", print(send.box), send.peer));
        for (const Transfer& receive : schedule.receives)
            if (count(receive.box) == 0 || !contains(schedule.target_tile, receive.box) ||
                !holds(receive.peer, rank, receive.box))
                return against(
                    rank, fmt::format("receives {} from {}, which does not hold it", print(receive.box), receive.peer));
        return {};
    }

    // An avg keeps its meaning. If the divisor falls by a factor, the sum is divided by that factor. If it rises, the
    // new summand is multiplied by that factor. Nothing else is scaled.
    Result<void> scales(const Schedule& schedule) const {
        Scale factor;
        if (adds()) factor.over = divisor(before) / divisor(after());
        if (fills()) factor.times = divisor(after()) / divisor(before);
        if (count(schedule.target_tile) == 0) factor = {};
        const bool whole = partitions(schedule.target_tile, schedule.scaled);
        if (factor == Scale{} ? schedule.scaled.empty() : schedule.scale == factor && whole) return {};
        return against(schedule.rank, "does not scale its tile as the reduction wants");
    }

    // The k-th send to a peer meets the peer's k-th receive from here.
    Result<void> pairs() const {
        std::map<std::pair<Index, Index>, std::vector<Box>> sent;
        std::map<std::pair<Index, Index>, std::vector<Box>> received;
        for (const Schedule& schedule : schedules) {
            for (const Transfer& send : schedule.sends) sent[{schedule.rank, send.peer}].push_back(send.box);
            for (const Transfer& receive : schedule.receives)
                if (receive.peer != schedule.rank) received[{receive.peer, schedule.rank}].push_back(receive.box);
        }
        for (const auto& [ends, boxes] : sent)
            if (received[ends] != boxes)
                return against(ends.first, fmt::format("rank {} does not receive what is sent to it", ends.second));
        for (const auto& [ends, boxes] : received)
            if (sent[ends] != boxes)
                return against(ends.second, fmt::format("rank {} does not send what is received from it", ends.first));
        return {};
    }

    // Every element of the tile is written once: per summand for sums, by one member of the group for a zero_fill.
    Result<void> covers(const Schedule& schedule) const {
        const Index rank = schedule.rank;
        std::map<Index, std::vector<Box>> parts;
        for (const Transfer& receive : schedule.receives)
            parts[adds() ? value_of(move.group, *position_of(before.mesh, receive.peer)) : 0].push_back(receive.box);
        if (fills()) {
            if (!partitions(schedule.target_tile, schedule.fills)) return against(rank, "does not fill its tile once");
            parts.clear();
            for (const Index member : group_of(before, move.group, rank))
                for (const Transfer& receive : schedules[static_cast<std::size_t>(member)].receives)
                    parts[0].push_back(receive.box);
        } else if (!schedule.fills.empty()) {
            return against(rank, "fills what it should receive");
        }
        for (Index part = 0; part < (adds() ? move.group_size : 1); ++part)
            if (!partitions(schedule.target_tile, parts[part]))
                return against(rank,
                               fmt::format("does not write each of {} elements once", count(schedule.target_tile)));
        return {};
    }
};

}  // namespace

Result<void> check_schedules(const Layout& before, const Step& step, const std::vector<Schedule>& schedules) {
    RESHARD_TRY(const auto& move, type_step(before, step));
    const Index devices = std::max(world_size(before.mesh), world_size(step.layout.mesh));
    if (static_cast<Index>(schedules.size()) < devices)
        return fail(Code::plan, fmt::format("{} schedules for {} devices", schedules.size(), devices));
    // A typed view has the same tiles on both sides. The schedules write them in the shape after it.
    const Judge judge{step.kind == StepKind::view ? step.layout : before, step, move, schedules};
    const auto takes_part = [&](Index rank) {
        return position_of(before.mesh, rank) || position_of(step.layout.mesh, rank);
    };
    for (std::size_t i = 0; i < schedules.size(); ++i) {
        const Schedule& schedule = schedules[i];
        if (schedule.rank != static_cast<Index>(i))
            return Judge::against(static_cast<Index>(i), "belongs to another rank");
        if (takes_part(schedule.rank)) {
            RESHARD_CHECK(judge.ends(schedule));
        } else if (!schedule.sends.empty() || !schedule.receives.empty() || !schedule.fills.empty()) {
            return Judge::against(schedule.rank, "a rank outside the mesh takes part");
        }
    }
    RESHARD_CHECK(judge.pairs());
    for (Index rank = 0; rank < devices; ++rank) {
        if (!takes_part(rank)) continue;
        RESHARD_CHECK(judge.covers(schedules[static_cast<std::size_t>(rank)]));
    }
    return {};
}

}  // namespace reshard
