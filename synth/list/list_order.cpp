#include "synth/list/list_order.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace reshard {

namespace {

/// Looking for the array that leaves least asks for every pair of arrays.
constexpr std::size_t greedy_arrays_max = 2048;
/// Each order costs a walk over all arrays and devices.
constexpr std::size_t orders_max = 16;

// The bytes that every device holds at some point of an order.
class Walk {
public:
    Walk(const Holdings& holdings, bool donate) : holdings_(holdings), donate_(donate) {
        for (const auto& arrays : holdings.devices) {
            Index held = 0;
            for (const Ends& ends : arrays) held += ends.source + (donate ? 0 : ends.target);
            held_.push_back(held);
        }
    }
    /// Takes the array into the bucket that is being filled.
    void take(std::size_t array) {
        bucket_.push_back(array);
        workspace_ = std::max(workspace_, holdings_.workspaces[array]);
        if (!donate_) return;
        for (std::size_t d = 0; d < held_.size(); ++d) held_[d] += holdings_.devices[d][array].target;
    }
    /// The bucket has run.
    void finish() {
        for (const std::size_t array : bucket_)
            for (std::size_t d = 0; donate_ && d < held_.size(); ++d) held_[d] -= holdings_.devices[d][array].source;
        bucket_.clear();
        workspace_ = 0;
    }
    /// The most that a device holds while the bucket runs, with this array in it as well.
    [[nodiscard]] Index most_with(std::size_t array) const {
        Index most = 0;
        for (std::size_t d = 0; d < held_.size(); ++d)
            most = std::max(most, held_[d] + (donate_ ? holdings_.devices[d][array].target : 0));
        return most + std::max(workspace_, holdings_.workspaces[array]);
    }
    /// The most that a device would hold when this array alone had run next.
    [[nodiscard]] Index most_behind(std::size_t array) const {
        Index most = 0;
        for (std::size_t d = 0; d < held_.size(); ++d) {
            const Ends& ends = holdings_.devices[d][array];
            most = std::max(most, held_[d] + (donate_ ? ends.target - ends.source : 0));
        }
        return most;
    }
    [[nodiscard]] bool empty() const { return bucket_.empty(); }

private:
    const Holdings& holdings_;
    const bool donate_;
    std::vector<Index> held_;
    Order bucket_;
    Index workspace_ = 0;
};

Order as_given(const Holdings& holdings) {
    Order order(holdings.workspaces.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    return order;
}

// Takes, among the arrays that fit now, the one that leaves the fullest device with the least.
std::optional<Order> greedy_order(const Holdings& holdings, Index limit) {
    Walk walk(holdings, true);
    Order left = as_given(holdings);
    Order order;
    while (!left.empty()) {
        auto best = left.end();
        Index least = index_max;
        for (auto array = left.begin(); array != left.end(); ++array) {
            const Index behind = walk.most_behind(*array);
            if (behind >= least || walk.most_with(*array) > limit) continue;
            best = array;
            least = behind;
        }
        if (best == left.end()) return std::nullopt;
        walk.take(*best);
        walk.finish();
        order.push_back(*best);
        left.erase(best);
    }
    return order;
}

}  // namespace

Result<Holdings> holdings_of(std::span<const Plan> plans, std::vector<Index> workspaces) {
    Holdings holdings;
    holdings.workspaces = std::move(workspaces);
    Index all = 0;
    for (const Index bytes : holdings.workspaces) all = saturating_add(all, bytes);
    for (const Index device : typical_devices(plans)) {
        std::vector<Ends>& arrays = holdings.devices.emplace_back();
        Index held = all;
        for (const Plan& plan : plans) {
            const auto bytes_of = [&](const Layout& layout) {
                return position_of(layout.mesh, device) ? tile_bytes(layout) : 0;
            };
            arrays.push_back({bytes_of(plan.source), bytes_of(plan.target)});
            held = saturating_add(held, saturating_add(arrays.back().source, arrays.back().target));
        }
        if (held == index_max) return fail(Code::overflow, "the arrays of the list leave 64 bits of bytes a device");
    }
    return holdings;
}

Order best_order_on(std::size_t device, const Holdings& holdings) {
    const std::vector<Ends>& arrays = holdings.devices[device];
    const auto shrinks = [&](std::size_t i) { return arrays[i].target <= arrays[i].source; };
    const auto before = [&](std::size_t a, std::size_t b) {
        if (shrinks(a) != shrinks(b)) return shrinks(a);
        const std::vector<Index>& workspaces = holdings.workspaces;
        if (shrinks(a)) return arrays[a].target + workspaces[a] < arrays[b].target + workspaces[b];
        return arrays[a].source + workspaces[a] > arrays[b].source + workspaces[b];
    };
    Order order = as_given(holdings);
    std::ranges::stable_sort(order, before);
    return order;
}

std::vector<Order> orders_worth_trying(const Holdings& holdings, Index limit, bool donate) {
    std::vector<Order> orders = {as_given(holdings)};
    if (!donate) return orders;
    for (std::size_t device = 0; device < holdings.devices.size() && device < orders_max; ++device)
        orders.push_back(best_order_on(device, holdings));
    if (holdings.workspaces.size() <= greedy_arrays_max)
        if (auto order = greedy_order(holdings, limit)) orders.push_back(std::move(*order));
    return orders;
}

std::vector<Index> held_one_by_one(const Order& order, const Holdings& holdings, bool donate) {
    Walk walk(holdings, donate);
    std::vector<Index> held;
    for (const std::size_t array : order) {
        held.push_back(walk.most_with(array));
        walk.take(array);
        walk.finish();
    }
    return held;
}

Index most_held(const Order& order, const Holdings& holdings, bool donate) {
    Index most = 0;
    for (const Index bytes : held_one_by_one(order, holdings, donate)) most = std::max(most, bytes);
    return most;
}

Index least_held(const Holdings& holdings, bool donate) {
    Index most = 0;
    for (std::size_t device = 0; device < holdings.devices.size(); ++device) {
        const Holdings alone{{holdings.devices[device]}, holdings.workspaces};
        most = std::max(most, most_held(best_order_on(0, alone), alone, donate));
    }
    return most;
}

std::vector<Order> buckets_of(const Order& order, const Holdings& holdings, Index limit, bool donate) {
    assert(most_held(order, holdings, donate) <= limit);
    std::vector<Order> buckets;
    Walk walk(holdings, donate);
    for (const std::size_t array : order) {
        if (!walk.empty() && walk.most_with(array) > limit) walk.finish();
        if (walk.empty()) buckets.emplace_back();
        walk.take(array);
        buckets.back().push_back(array);
    }
    return buckets;
}

}  // namespace reshard
