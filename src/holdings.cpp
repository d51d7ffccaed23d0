#include "holdings.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace reshard {

Index full_ends(const Plan& plan) { return saturating_add(tile_bytes(plan.source), tile_bytes(plan.target)); }

std::vector<Index> ends_held(std::span<const Plan> plans, std::span<const std::vector<std::size_t>> buckets,
                             bool donate) {
    std::vector<Index> most(buckets.size(), 0);
    const auto bytes_on = [](const Layout& layout, Index device) {
        return position_of(layout.mesh, device) ? tile_bytes(layout) : 0;
    };
    for (const Index device : typical_devices(plans)) {
        Index held = 0;
        for (const auto& bucket : buckets)
            for (const std::size_t array : bucket) {
                held = saturating_add(held, bytes_on(plans[array].source, device));
                if (!donate) held = saturating_add(held, bytes_on(plans[array].target, device));
            }
        for (std::size_t b = 0; b < buckets.size(); ++b) {
            if (donate)
                for (const std::size_t array : buckets[b])
                    held = saturating_add(held, bytes_on(plans[array].target, device));
            most[b] = std::max(most[b], held);
            if (donate && held != index_max)  // a sum that saturated stays so
                for (const std::size_t array : buckets[b]) held -= bytes_on(plans[array].source, device);
        }
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
