#include "src/judge/together.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/judge/execution.hpp"
#include "src/judge/live_bytes.hpp"

namespace reshard {

namespace {

constexpr Index free_bytes = Index{16} << 20;  // of a workspace that no limit bounds
constexpr Index alignment = 64;                // of a part: a cache line

using Group = std::vector<std::size_t>;

std::vector<Index> picked(std::span<const Index> values, const Group& group) {
    std::vector<Index> some;
    for (const std::size_t array : group) some.push_back(values[array]);
    return some;
}

// Sums are added up in staging, one array after another.
bool only_moves(const Plan& plan) {
    return summand_count(plan.source) == 1 &&
           std::ranges::all_of(plan.steps, [](const Step& step) { return summand_count(step.layout) == 1; });
}

// Bytes that the workspace of a bucket may have, where `least` are needed by one array.
Index room_for(Index least, Index held, const MemoryPolicy& memory) {
    if (!memory.footprint_bytes_max) return std::max(least, free_bytes);
    // If no staging size is given, staging gets whatever the limit leaves.
    if (memory.staging_bytes == 0) return least;
    return std::max(least, std::min(free_bytes, workspace_room(memory, held)));
}

Index part_begin(Index bytes) { return saturating_multiply(ceil_divide(bytes, alignment), alignment); }

// The bytes of parts that end at `bytes`, with one more part.
Index with_part(Index bytes, Index own) { return saturating_add(part_begin(bytes), own); }

std::vector<Group> groups_within(const Group& arrays, std::span<const Index> workspaces, Index room) {
    std::vector<Group> groups;
    Group group;
    Index bytes = 0;
    const auto close = [&] {
        if (group.size() > 1) groups.push_back(group);
        group.clear();
        bytes = 0;
    };
    for (const std::size_t array : arrays) {
        if (with_part(bytes, workspaces[array]) > room) close();
        group.push_back(array);
        bytes = with_part(bytes, workspaces[array]);
    }
    close();
    return groups;
}

}  // namespace

Parts parts_of(std::span<const Index> workspaces) {
    Parts parts;
    for (const Index bytes : workspaces) {
        parts.offsets.push_back(part_begin(parts.bytes));
        parts.bytes = with_part(parts.bytes, bytes);
    }
    return parts;
}

std::vector<Group> choose_together(const ListPlan& list, const Capabilities& capabilities, const MemoryPolicy& memory) {
    std::vector<Group> all;
    if (!capabilities.steps_overlap || list.plans.size() < 2) return all;
    const std::vector<Index> held = ends_held(list.plans, list.buckets, memory.donate);
    std::vector<Index> workspaces;
    for (std::size_t i = 0; i < list.plans.size(); ++i)
        workspaces.push_back(workspace_bytes(list.plans[i], execution_of(list, i), memory.donate));
    for (std::size_t b = 0; b < list.buckets.size(); ++b) {
        Group shared;
        Index least = 0;
        for (const std::size_t array : list.buckets[b]) {
            least = std::max(least, workspaces[array]);
            if (workspaces[array] > 0 && only_moves(list.plans[array]) &&
                std::holds_alternative<AsSteps>(execution_of(list, array)))
                shared.push_back(array);
        }
        for (Group& group : groups_within(shared, workspaces, room_for(least, held[b], memory)))
            all.push_back(std::move(group));
    }
    return all;
}

Result<void> may_run_together(const ListPlan& list) {
    std::vector<std::size_t> bucket_of(list.plans.size());
    for (std::size_t b = 0; b < list.buckets.size(); ++b)
        for (const std::size_t array : list.buckets[b]) bucket_of[array] = b;
    std::vector<char> seen(list.plans.size(), 0);
    for (const Group& group : list.together) {
        if (group.size() < 2) return fail(Code::plan, fmt::format("{} arrays run together", group.size()));
        for (const std::size_t array : group) {
            if (array >= list.plans.size())
                return fail(Code::plan,
                            fmt::format("array {}, of {}, runs together with others", array, list.plans.size()));
            if (seen[array]++ != 0)
                return fail(Code::plan, fmt::format("array {} runs together with others twice", array));
            if (bucket_of[array] != bucket_of[group.front()])
                return fail(Code::plan,
                            fmt::format("arrays {} and {} run together but are of two buckets", group.front(), array));
            if (!std::holds_alternative<AsSteps>(execution_of(list, array)))
                return fail(Code::plan,
                            fmt::format("array {} runs step by step together with others, but not as steps", array));
        }
    }
    return {};
}

std::vector<Index> bucket_workspaces(const ListPlan& list, std::span<const Index> workspaces) {
    std::vector<Index> all;
    std::vector<std::size_t> bucket_of(list.plans.size());
    for (const auto& bucket : list.buckets) {
        Index most = 0;
        for (const std::size_t array : bucket) {
            bucket_of[array] = all.size();
            most = std::max(most, workspaces[array]);
        }
        all.push_back(most);
    }
    for (const Group& group : list.together) {
        Index& most = all[bucket_of[group.front()]];
        most = std::max(most, parts_of(picked(workspaces, group)).bytes);
    }
    return all;
}

}  // namespace reshard
