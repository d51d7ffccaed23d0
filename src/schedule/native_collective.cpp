#include "src/schedule/native_collective.hpp"

#include <algorithm>

namespace reshard {
namespace {

bool same_shape(const Box& a, const Box& b) { return std::ranges::equal(a, b, {}, &Interval::size, &Interval::size); }

bool all_of_one_shape(const std::vector<Box>& boxes) {
    return std::ranges::all_of(boxes, [&](const Box& box) { return same_shape(box, boxes.front()); });
}

// Returns one box per member, in the members' order. Returns null if a member has no box or several, or if a stranger
// has one.
std::optional<std::vector<Box>> boxes_of(const std::vector<Transfer>& transfers, const std::vector<Index>& members) {
    if (transfers.size() != members.size()) return {};
    std::vector<Box> boxes;
    for (const Index member : members) {
        const auto found = std::ranges::find(transfers, member, &Transfer::peer);
        if (found == transfers.end() || count(found->box) == 0) return {};
        boxes.push_back(found->box);
    }
    return boxes;
}

// The rank's own share is only a receive.
std::vector<Transfer> sends_with_own(const Schedule& schedule, const Box& own) {
    std::vector<Transfer> sends = schedule.sends;
    sends.push_back({schedule.rank, own});
    return sends;
}

const Box* own_receive(const Schedule& schedule) {
    const auto found = std::ranges::find(schedule.receives, schedule.rank, &Transfer::peer);
    return found == schedule.receives.end() ? nullptr : &found->box;
}

// Orders the members as their blocks lie in memory, so that the result may be gathered in place.
std::optional<NativeCollective> gather(const Schedule& schedule) {
    std::vector<Transfer> blocks = schedule.receives;
    std::ranges::sort(blocks, [](const Transfer& a, const Transfer& b) {
        return std::ranges::lexicographical_compare(a.box, b.box, {}, &Interval::begin, &Interval::begin);
    });
    NativeCollective made{StepKind::all_gather, {}, {*own_receive(schedule)}, {}};
    for (const Transfer& block : blocks) made.members.push_back(block.peer);
    auto takes = boxes_of(schedule.receives, made.members);
    if (!takes || schedule.sends.size() + 1 != blocks.size()) return {};
    made.takes = std::move(*takes);
    return made;
}

std::optional<NativeCollective> turn(const Schedule& schedule) {
    auto gives = boxes_of(sends_with_own(schedule, *own_receive(schedule)), schedule.group);
    auto takes = boxes_of(schedule.receives, schedule.group);
    if (!gives || !takes) return {};
    return NativeCollective{StepKind::all_to_all, schedule.group, std::move(*gives), std::move(*takes)};
}

std::optional<NativeCollective> scatter(const Schedule& schedule) {
    const Box& own = *own_receive(schedule);
    auto gives = boxes_of(sends_with_own(schedule, own), schedule.group);
    const auto takes = boxes_of(schedule.receives, schedule.group);
    const auto is_own = [&](const Box& box) { return box == own; };
    if (!gives || !takes || !std::ranges::all_of(*takes, is_own)) return {};
    return NativeCollective{StepKind::reduce_scatter, schedule.group, std::move(*gives), {own}};
}

// Tiles of several intervals have no group.
std::optional<NativeCollective> reduction(const Schedule& schedule) {
    if (count(schedule.target_tile) == 0) return {};
    const Box box = as_box(schedule.target_tile);
    return NativeCollective{StepKind::all_reduce, schedule.group, {box}, {box}};
}

std::optional<NativeCollective> of_kind(const Schedule& schedule) {
    switch (schedule.kind) {
        case StepKind::all_gather:
            return gather(schedule);
        case StepKind::all_to_all:
            return turn(schedule);
        case StepKind::reduce_scatter:
            return scatter(schedule);
        case StepKind::all_reduce:
            return reduction(schedule);
        case StepKind::slice:
        case StepKind::permute:
        case StepKind::zero_fill:
        case StepKind::exchange:
        case StepKind::view:
        case StepKind::cast:
            break;
    }
    return {};
}

}  // namespace

std::optional<NativeCollective> native_collective(const Schedule& schedule) {
    if (schedule.group.size() < 2 || !schedule.fills.empty() || own_receive(schedule) == nullptr) return {};
    auto made = of_kind(schedule);
    if (!made || !all_of_one_shape(made->gives) || !all_of_one_shape(made->takes) ||
        !same_shape(made->gives.front(), made->takes.front())) {
        return {};
    }
    return made;
}

}  // namespace reshard
