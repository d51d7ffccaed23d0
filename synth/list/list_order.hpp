// Order and buckets of a list: when each array is moved, so that what the devices hold stays under a limit and they
// wait for each other as seldom as can be.
#pragma once

#include "reshard/planner/list.hpp"

namespace reshard {

/// What one array takes on one device, in bytes.
struct Ends {
    Index source = 0;
    Index target = 0;
};

/// For each typical device the bytes of each array.
struct Holdings {
    std::vector<std::vector<Ends>> devices;
    std::vector<Index> workspaces;  ///< of each array, on every device
};

/// Errors: overflow when all together leave 64 bits.
[[nodiscard]] Result<Holdings> holdings_of(std::span<const Plan> plans, std::vector<Index> workspaces);

/// Arrays in the order in which they run, one in each bucket or more.
using Order = std::vector<std::size_t>;

/// The best order on one device, where sources are freed as soon as they are done: first the arrays that leave the
/// device with less, those that need the least room first; then the others, those that leave the least room for their
/// source last (the first part backwards in time).
[[nodiscard]] Order best_order_on(std::size_t device, const Holdings& holdings);

/// The best order of each device, and the order that always takes the array that leaves the fullest device with least.
/// Without donation the caller's order.
[[nodiscard]] std::vector<Order> orders_worth_trying(const Holdings& holdings, Index limit, bool donate);

/// For each array in turn the most bytes that any device holds while it runs by itself.
[[nodiscard]] std::vector<Index> held_one_by_one(const Order& order, const Holdings& holdings, bool donate);

/// The largest of those.
[[nodiscard]] Index most_held(const Order& order, const Holdings& holdings, bool donate);

/// The least bytes that any order needs: the most, over devices, of what each by itself would need at best.
[[nodiscard]] Index least_held(const Holdings& holdings, bool donate);

/// The fewest buckets for this order within the limit: each takes arrays as long as they fit, which never leaves later
/// ones worse off. pre: most_held(order, holdings, donate) <= limit.
[[nodiscard]] std::vector<Order> buckets_of(const Order& order, const Holdings& holdings, Index limit, bool donate);

}  // namespace reshard
