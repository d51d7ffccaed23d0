#include "backends/mpi/messages/reduce_groups.hpp"

#include <algorithm>

#include "backends/mpi/base/agree.hpp"
#include "backends/mpi/shm/shm_reduce_plan.hpp"
#include "src/base/try.hpp"

namespace reshard::mpi {
namespace {

bool has_something(const Transfer& transfer) { return count(transfer.box) > 0; }

bool stays_inside(const Schedule& schedule, const NodeMap& nodes) {
    const auto is_near = [&](const Transfer& transfer) { return nodes.has(transfer.peer); };
    return schedule.combine != Combine::copy && std::ranges::all_of(schedule.sends, is_near) &&
           std::ranges::all_of(schedule.receives, is_near) && summands_of(schedule).has_value();
}

// The first rank of the sum, which identifies the sum. A rank that takes nothing does not know it, and returns the
// complement of a rank that does.
Index first_rank(const Schedule& schedule) {
    const auto summands = summands_of(schedule);
    if (!summands->ranks.empty()) return *std::ranges::min_element(summands->ranks);
    const auto send = std::ranges::find_if(schedule.sends, has_something);
    return send == schedule.sends.end() ? schedule.rank : ~send->peer;
}

bool takes_part(const Schedule& schedule) {
    return std::ranges::any_of(schedule.sends, has_something) || std::ranges::any_of(schedule.receives, has_something);
}

Result<std::vector<Index>> members_of(const Schedule& schedule, const NodeMap& nodes) {
    RESHARD_TRY(const auto& firsts, gathered(nodes.own.get(), first_rank(schedule)));
    const auto first_of = [&](Index rank) {
        const Index first = firsts[static_cast<std::size_t>(place_in(nodes.members, rank))];
        return first >= 0 ? first : firsts[static_cast<std::size_t>(place_in(nodes.members, ~first))];
    };
    std::vector<Index> members;
    if (!takes_part(schedule)) return members;
    std::ranges::copy_if(nodes.members, std::back_inserter(members),
                         [&](Index rank) { return first_of(rank) == first_of(schedule.rank); });
    return members;
}

}  // namespace

Result<std::vector<ReduceGroups>> find_sums(const NodeMap& nodes, std::span<const RankStep* const> steps) {
    std::vector<ReduceGroups> sums(steps.size());
    if (nodes.own.empty()) return sums;
    std::vector<char> votes;
    for (const RankStep* step : steps) votes.push_back(stays_inside(step->schedule, nodes) ? 1 : 0);
    RESHARD_TRY(const auto& agreed, least(nodes.own.get(), std::move(votes)));
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (agreed[i] == 0) continue;
        RESHARD_TRY(auto& members, members_of(steps[i]->schedule, nodes));
        sums[i] = {true, std::move(members)};
    }
    return sums;
}

}  // namespace reshard::mpi
