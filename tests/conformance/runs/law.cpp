#include "law.hpp"

#include <algorithm>

namespace reshard::runs {
namespace {

// True if a limit of 0 bytes is too little on the rank.
bool holds_bytes(const List& list, Index rank) {
    return std::ranges::any_of(list.items, [&](const conformance::Item& item) {
        const auto lowered = lower(item.plan, rank);
        return lowered && lowered->source_bytes + lowered->target_bytes > 0;
    });
}

}  // namespace

// Ranks that never meet learn of another rank's failure at the latest when they start.
Verdict of_prepare(const Schedule& schedule, std::size_t executor, Index rank, bool collective) {
    if (needs_timeout(schedule.fault)) return Verdict::either;
    if (!breaks_prepare(schedule.fault) || executor != schedule.faulty_executor) return Verdict::right;
    if (schedule.fault == Fault::limit && !holds_bytes(schedule.lists[executor], schedule.faulty_rank))
        return Verdict::either;
    const bool learns = collective || (rank == schedule.faulty_rank && schedule.fault != Fault::other_plan);
    return learns ? Verdict::error : Verdict::either;
}

// A fault of one executor does not affect another, unless a rank stays away from all executors.
Verdict of_run(const Schedule& schedule, std::size_t executor, int run) {
    switch (schedule.fault) {
        case Fault::none:
        case Fault::started_twice:
            return Verdict::right;
        case Fault::late:
        case Fault::leaves:
        case Fault::idle:
            return Verdict::either;
        default:
            break;
    }
    if (executor != schedule.faulty_executor) return Verdict::right;
    // A rank that then binds a right buffer has one second to start, which may not suffice on a loaded machine.
    if (breaks_prepare(schedule.fault)) return Verdict::either;  // a rank that does not know yet
    const int first = schedule.faulty_run + (schedule.fault == Fault::dropped_in_flight ? 1 : 0);
    return run < first ? Verdict::right : Verdict::either;
}

}  // namespace reshard::runs
