#include "src/judge/live_bytes.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reshard {

Index full_ends(const Plan& plan) { return saturating_add(tile_bytes(plan.source), tile_bytes(plan.target)); }

std::vector<Index> held_on_device(std::span<const EndBytes> arrays, std::span<const std::vector<std::size_t>> buckets,
                                  bool donate) {
    Index held = 0;
    for (const EndBytes& ends : arrays) {
        held = saturating_add(held, ends.source);
        if (!donate) held = saturating_add(held, ends.target);
    }
    std::vector<Index> while_it_runs;
    for (const auto& bucket : buckets) {
        for (const std::size_t array : bucket)
            if (donate) held = saturating_add(held, arrays[array].target);
        while_it_runs.push_back(held);
        if (!donate || held == index_max) continue;  // a sum that saturated stays so
        for (const std::size_t array : bucket) held -= arrays[array].source;
    }
    return while_it_runs;
}

std::vector<Index> ends_held(std::span<const Plan> plans, std::span<const std::vector<std::size_t>> buckets,
                             bool donate) {
    std::vector<Index> most(buckets.size(), 0);
    for (const Index device : typical_devices(plans)) {
        const auto bytes_of = [&](const Layout& layout) {
            return position_of(layout.mesh, device) ? tile_bytes(layout) : 0;
        };
        std::vector<EndBytes> arrays;
        for (const Plan& plan : plans) arrays.push_back({bytes_of(plan.source), bytes_of(plan.target)});
        const std::vector<Index> held = held_on_device(arrays, buckets, donate);
        for (std::size_t b = 0; b < most.size(); ++b) most[b] = std::max(most[b], held[b]);
    }
    return most;
}

Result<void> each_in_one_bucket(const ListPlan& list) {
    std::vector<int> times(list.plans.size());
    for (std::size_t b = 0; b < list.buckets.size(); ++b) {
        if (list.buckets[b].empty()) return fail(Code::plan, fmt::format("bucket {} is empty", b));
        for (const std::size_t array : list.buckets[b]) {
            if (array >= times.size())
                return fail(Code::plan, fmt::format("bucket {} has array {}, of {}", b, array, times.size()));
            if (++times[array] > 1) return fail(Code::plan, fmt::format("array {} is in two buckets", array));
        }
    }
    const auto nowhere = std::ranges::find(times, 0);
    if (nowhere == times.end()) return {};
    return fail(Code::plan, fmt::format("array {} is in no bucket", nowhere - times.begin()));
}

}  // namespace reshard
