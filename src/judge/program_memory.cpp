#include "src/judge/program_memory.hpp"

#include <algorithm>

namespace reshard {

void Ledger::give_back(const std::vector<Moment>& users, Index bytes) {
    Change last{-1, -1, -bytes};
    for (const Moment& user : users) {
        const Index turn = user.start == user.end ? 2 * user.place + 1 : -1;
        if (std::pair(user.end, turn) > std::pair(last.time, last.turn)) last = {user.end, turn, -bytes};
    }
    changes_.push_back(last);
}

std::vector<Ledger::Held> Ledger::held(Index& peak) {
    std::ranges::sort(changes_);
    std::vector<Held> steps{{0, begin_}};
    Index now = begin_;
    peak = now;
    for (const Change& change : changes_) {
        now = saturating_add(now, change.bytes);
        peak = std::max(peak, now);
        if (steps.back().time != change.time) steps.push_back({change.time, now});
        steps.back().bytes = now;
    }
    return steps;
}

}  // namespace reshard
