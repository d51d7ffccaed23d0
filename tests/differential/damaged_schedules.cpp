// Faults between ranks, and changes that only look like faults.
#include <algorithm>

#include "differential/drawn_plans.hpp"

namespace reshard::test {

bool Draw::damage_one_rank(std::vector<Schedule>& schedules) {
    Schedule& schedule = one_of(schedules);
    auto& list = once_in(3) ? schedule.sends : schedule.receives;
    if (list.empty()) return false;
    Transfer& transfer = one_of(list);
    const auto at = list.begin() + (&transfer - list.data());
    switch (below(6)) {
        case 0:
            list.erase(at);
            return true;
        case 1:
            list.push_back(Transfer(transfer));
            return true;
        case 2:
            transfer.peer = below(static_cast<Index>(schedules.size()) + 1);
            return true;
        case 3:
            std::swap(transfer, list.back());
            return true;
        default: {
            if (transfer.box.empty()) return false;
            Interval& side = one_of(transfer.box);
            if (once_in(2)) side.begin += 1;
            if (once_in(2)) side.end += once_in(2) ? 1 : -1;
            // An empty box moves nothing. The judge in C++ refuses it; the proved judge accepts it.
            return side.size() > 0;
        }
    }
}

bool Draw::damage_message(std::vector<Schedule>& schedules) {
    Schedule& receiver = one_of(schedules);
    if (receiver.receives.empty()) return false;
    Transfer& receive = one_of(receiver.receives);
    const auto send_of = [&](Index peer, const Box& box) -> Transfer* {
        auto& sends = schedules[static_cast<std::size_t>(peer)].sends;
        const auto found = std::ranges::find(sends, Transfer{receiver.rank, box});
        return found == sends.end() ? nullptr : &*found;
    };
    const Index peer = receive.peer;
    Transfer* send = send_of(peer, receive.box);
    if ((send == nullptr) != (peer == receiver.rank)) return false;
    if (once_in(2)) {
        // The box comes from another rank, which may hold it too.
        const Index other = below(static_cast<Index>(schedules.size()));
        const Transfer moved{receiver.rank, receive.box};
        receive.peer = other;
        if (send != nullptr) {
            auto& sends = schedules[static_cast<std::size_t>(peer)].sends;
            sends.erase(sends.begin() + (send - sends.data()));
        }
        if (other != receiver.rank) schedules[static_cast<std::size_t>(other)].sends.push_back(moved);
        return true;
    }
    // The box travels in two parts, or one element shorter, or the parts in the wrong order.
    if (receive.box.empty()) return false;
    const Index way = below(4);
    const auto side = static_cast<std::size_t>(below(static_cast<Index>(receive.box.size())));
    if (receive.box[side].size() < 2) return false;
    const Index cut = receive.box[side].begin + 1 + below(receive.box[side].size() - 1);
    Box rest = receive.box;
    rest[side].begin = cut;
    const Box whole = receive.box;
    receive.box[side].end = cut;
    const Box part = receive.box;
    if (way > 0) receiver.receives.push_back({peer, rest});
    if (send == nullptr) return true;
    send->box = part;
    auto& sends = schedules[static_cast<std::size_t>(peer)].sends;
    if (way > 0) sends.push_back({receiver.rank, rest});
    if (way == 3) std::swap(*std::ranges::find(sends, Transfer{receiver.rank, part}), sends.back());
    return true;
}

bool Draw::damage_fills(std::vector<Schedule>& schedules) {
    Schedule& schedule = one_of(schedules);
    switch (below(4)) {
        case 0:
            if (schedule.fills.empty())
                for (Box& box : boxes_of(schedule.target_tile)) schedule.fills.push_back(std::move(box));
            else
                schedule.fills.pop_back();
            return true;
        case 1: {
            if (schedule.fills.empty() || schedule.fills[0].empty()) return false;
            Interval& side = one_of(schedule.fills[0]);
            side.end -= 1;
            return side.size() > 0;
        }
        default: {
            // Another replica keeps the values of a zero_fill.
            if (schedule.kind != StepKind::zero_fill || schedule.receives.empty()) return false;
            std::vector<std::size_t> replicas;
            for (const Schedule& one : schedules)
                if (one.source_tile == schedule.source_tile) replicas.push_back(static_cast<std::size_t>(one.rank));
            Schedule& other = schedules[one_of(replicas)];
            if (&other == &schedule) return false;
            other.receives = schedule.receives;
            for (Transfer& receive : other.receives) receive.peer = other.rank;
            schedule.receives.clear();
            return true;
        }
    }
}

bool Draw::damage(std::vector<Schedule>& schedules) {
    const std::vector<Schedule> before = schedules;
    const Index which = below(10);
    const bool fills = schedules[0].kind == StepKind::zero_fill ? which < 6 : which < 1;
    const bool done = fills       ? damage_fills(schedules)
                      : which < 7 ? damage_one_rank(schedules)
                                  : damage_message(schedules);
    if (!done || schedules == before) {
        schedules = before;
        return false;
    }
    return true;
}

}  // namespace reshard::test
