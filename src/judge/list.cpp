#include "reshard/planner/list.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/hash.hpp"
#include "src/base/try.hpp"
#include "src/judge/device_sets.hpp"
#include "src/judge/execution.hpp"
#include "src/judge/list_loads.hpp"
#include "src/judge/live_bytes.hpp"
#include "src/judge/together.hpp"

namespace reshard {

ListPlan in_one_bucket(std::vector<Plan> plans) {
    ListPlan list{std::move(plans), {}};
    if (list.plans.empty()) return list;
    list.buckets.emplace_back(list.plans.size());
    std::iota(list.buckets.front().begin(), list.buckets.front().end(), std::size_t{0});
    return list;
}

Index world_size(const ListPlan& list) {
    Index devices = 0;
    for (const Plan& plan : list.plans) devices = std::max(devices, world_size(plan));
    return devices;
}

Execution execution_of(const ListPlan& list, std::size_t array) {
    return list.executions.empty() ? Execution{} : list.executions[array];
}

std::uint64_t fingerprint(const ListPlan& list, const MemoryPolicy& memory) {
    std::uint64_t all = list.plans.size() + 1;
    for (std::size_t i = 0; i < list.plans.size(); ++i) mix(all, fingerprint(list.plans[i], execution_of(list, i)));
    mix(all, memory);
    const auto mix_all = [&](const std::vector<std::vector<std::size_t>>& groups) {
        for (const auto& group : groups) {
            mix(all, group.size());
            for (const std::size_t array : group) mix(all, array);
        }
    };
    if (list.buckets.size() > 1) mix_all(list.buckets);
    if (list.together.empty()) return all;
    mix(all, list.together.size());
    mix_all(list.together);
    return all;
}

ListPlan choose_executions(ListPlan list, const Capabilities& capabilities, const MemoryPolicy& memory) {
    if (!each_in_one_bucket(list) ||
        !std::ranges::all_of(list.plans, [](const Plan& plan) { return check(plan).has_value(); }))
        return list;
    const std::vector<Index> held = ends_held(list.plans, list.buckets, memory.donate);
    list.executions.assign(list.plans.size(), AsSteps{});
    for (std::size_t b = 0; b < list.buckets.size(); ++b)
        for (const std::size_t array : list.buckets[b])
            list.executions[array] = choose_within(list.plans[array], capabilities, workspace_room(memory, held[b]),
                                                   memory.donate, Vocabulary::all);
    list.together = choose_together(list, capabilities, memory);
    return list;
}

std::vector<Index> typical_devices(std::span<const Plan> plans) {
    DeviceSets sets;
    for (const Plan& plan : plans) {
        sets.number_of(plan.source.mesh);
        sets.number_of(plan.target.mesh);
    }
    std::vector<Index> devices;
    for (const DeviceClass& one : sets.classes()) devices.push_back(one.device);
    return devices;
}

namespace {

Result<void> keep_limit(std::size_t bucket, Index held, const MemoryPolicy& memory) {
    const Index needed = saturating_add(held, memory.staging_bytes);
    if (!memory.footprint_bytes_max || needed <= *memory.footprint_bytes_max) return {};
    return fail(Code::infeasible, fmt::format("bucket {}: needs {} a device, {} of it for staging, limit is {}", bucket,
                                              format_bytes(needed), format_bytes(memory.staging_bytes),
                                              format_bytes(*memory.footprint_bytes_max)));
}

}  // namespace

Result<ListVerdict> check(const ListPlan& list, const MemoryPolicy& memory) {
    return judge(list, memory).map([](const Judged<ListPlan>& judged) { return judged.verdict(); });
}

Result<Judged<ListPlan>> judge(const ListPlan& list, const MemoryPolicy& memory) {
    RESHARD_CHECK(each_in_one_bucket(list));
    if (!list.executions.empty() && list.executions.size() != list.plans.size())
        return fail(Code::plan,
                    fmt::format("{} plans came with {} executions", list.plans.size(), list.executions.size()));
    std::vector<Judged<Plan>> plans;
    for (std::size_t i = 0; i < list.plans.size(); ++i) {
        const auto one = judge(list.plans[i], execution_of(list, i), {.memory = {.donate = memory.donate}});
        if (!one) return fail(one.error().code, fmt::format("array {}: {}", i, one.error().message));
        plans.push_back(*one);
    }
    return judge(plans, list.buckets, memory, list.together);
}

Result<Judged<ListPlan>> judge(std::span<const Judged<Plan>> plans, std::vector<std::vector<std::size_t>> buckets,
                               const MemoryPolicy& memory, std::vector<std::vector<std::size_t>> together) {
    ListPlan list{{}, std::move(buckets), {}, std::move(together)};
    ListVerdict verdict;
    for (const Judged<Plan>& plan : plans) {
        const Split* split = std::get_if<Split>(&plan.execution());
        if (split != nullptr && split->overlapped && plans.size() > 1)
            return fail(Code::plan, "pieces that overlap are of a plan by itself, and this is one of several");
        RESHARD_TRY(const auto& held, within(plan, {.memory = {.donate = memory.donate}}));
        list.plans.push_back(plan.plan());
        list.executions.push_back(plan.execution());
        verdict.plans.push_back(held.verdict());
    }
    RESHARD_CHECK(each_in_one_bucket(list));
    RESHARD_CHECK(may_run_together(list));
    const std::vector<Index> held = ends_held(list.plans, list.buckets, memory.donate);
    std::vector<Index> own;
    for (std::size_t i = 0; i < list.plans.size(); ++i)
        own.push_back(verdict.plans[i].footprint_bytes - full_ends(list.plans[i]));
    const std::vector<Index> workspaces = bucket_workspaces(list, own);
    ListLoads loads(list, verdict.plans);
    for (std::size_t b = 0; b < list.buckets.size(); ++b) {
        verdict.bucket_loads.push_back(loads.load_of(list.buckets[b]));
        verdict.bucket_bytes.push_back(saturating_add(held[b], workspaces[b]));
        RESHARD_CHECK(keep_limit(b, verdict.bucket_bytes[b], memory));
        verdict.footprint_bytes = std::max(verdict.footprint_bytes, verdict.bucket_bytes[b]);
        verdict.ends_bytes = std::max(verdict.ends_bytes, held[b]);
    }
    verdict.load = loads.load_of_all();
    verdict.lower_bound_bytes = loads.lower_bound_bytes();
    return Judged<ListPlan>({std::move(list), std::move(verdict), memory});
}

}  // namespace reshard
