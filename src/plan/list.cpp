#include "reshard/algebra/list.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/plan/live_bytes.hpp"

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

std::uint64_t fingerprint(const ListPlan& list) {
    std::uint64_t all = list.plans.size() + 1;
    const auto add = [&](std::uint64_t word) { all = (all ^ word) * 0x9e3779b97f4a7c15u + (all >> 29); };
    for (const Plan& plan : list.plans) add(fingerprint(plan));
    if (list.buckets.size() < 2) return all;
    for (const auto& bucket : list.buckets) {
        add(bucket.size());
        for (const std::size_t array : bucket) add(array);
    }
    return all;
}

std::vector<Index> typical_devices(std::span<const Plan> plans) {
    std::vector<const Mesh*> meshes;  // of different devices
    const auto add = [&](const Mesh& mesh) {
        const auto same = [&](const Mesh* other) { return same_devices(mesh, *other); };
        if (std::ranges::none_of(meshes, same)) meshes.push_back(&mesh);
    };
    for (const Plan& plan : plans) {
        add(plan.source.mesh);
        add(plan.target.mesh);
    }
    std::map<std::vector<bool>, Index> found;
    for (const Mesh* mesh : meshes)
        for (Index position = 0; position < device_count(*mesh); ++position) {
            const Index device = device_at(*mesh, position);
            std::vector<bool> in;
            for (const Mesh* other : meshes) in.push_back(position_of(*other, device).has_value());
            found.emplace(std::move(in), device);
            if (meshes.size() == 1) break;
        }
    std::vector<Index> devices;
    for (const auto& [in, device] : found) devices.push_back(device);
    std::ranges::sort(devices);
    return devices;
}

namespace {

// The verdict on one plan, with so many bytes for its workspace where there is a limit.
Result<Verdict> judge(const Plan& plan, std::size_t array, std::optional<Index> workspace_bytes_max, bool donate) {
    Limits limits{std::nullopt, std::nullopt, donate};
    if (workspace_bytes_max) limits.footprint_bytes_max = saturating_add(full_ends(plan), *workspace_bytes_max);
    auto verdict = check(plan, limits);
    if (!verdict) return fail(verdict.error().code, fmt::format("array {}: {}", array, verdict.error().message));
    return verdict;
}

// Bytes that the limit leaves for the workspace of a bucket.
Result<Index> workspace_room(std::size_t bucket, Index held, const ListLimits& limits) {
    if (!limits.footprint_bytes_max) return index_max;
    const Index needed = saturating_add(held, limits.staging_bytes);
    if (needed <= *limits.footprint_bytes_max) return *limits.footprint_bytes_max - needed;
    return fail(Code::infeasible, fmt::format("bucket {}: needs {} a device, {} of it for staging, limit is {}", bucket,
                                              format_bytes(needed), format_bytes(limits.staging_bytes),
                                              format_bytes(*limits.footprint_bytes_max)));
}

}  // namespace

Result<ListVerdict> check(const ListPlan& list, const ListLimits& limits) {
    if (auto once = each_in_one_bucket(list); !once) return tl::unexpected(once.error());
    ListVerdict verdict;
    for (std::size_t i = 0; i < list.plans.size(); ++i) {
        auto one = judge(list.plans[i], i, std::nullopt, limits.donate);
        if (!one) return tl::unexpected(one.error());
        verdict.plans.push_back(std::move(*one));
    }
    const std::vector<Index> held = ends_held(list.plans, list.buckets, limits.donate);
    for (std::size_t b = 0; b < list.buckets.size(); ++b) {
        const auto room = workspace_room(b, held[b], limits);
        if (!room) return tl::unexpected(room.error());
        Index workspace = 0;
        for (const std::size_t array : list.buckets[b]) {
            Verdict& one = verdict.plans[array];
            const Index ends = full_ends(list.plans[array]);
            if (one.footprint_bytes > saturating_add(ends, *room)) {
                auto in_pieces = judge(list.plans[array], array, *room, limits.donate);
                if (!in_pieces) return tl::unexpected(in_pieces.error());
                one = std::move(*in_pieces);
            }
            workspace = std::max(workspace, one.footprint_bytes - ends);
            verdict.received_bytes = saturating_add(verdict.received_bytes, one.received_bytes);
            for (const Move& move : one.moves) verdict.messages = saturating_add(verdict.messages, move.messages);
        }
        verdict.bucket_bytes.push_back(saturating_add(held[b], workspace));
        verdict.footprint_bytes = std::max(verdict.footprint_bytes, verdict.bucket_bytes.back());
        verdict.ends_bytes = std::max(verdict.ends_bytes, held[b]);
    }
    return verdict;
}

}  // namespace reshard
