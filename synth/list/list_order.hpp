// Order and buckets of a list: when each array moves, so that devices stay under a limit and rarely wait for each
// other.
#pragma once

#include "reshard/planner/list.hpp"

namespace reshard {

/// The bytes of one array on one device.
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

/// Arrays in running order. A bucket holds one or more.
using Order = std::vector<std::size_t>;

/// The best order on one device if each source is freed as soon as its array is done. First come the arrays that
/// shrink, by ascending target plus workspace. Then come the arrays that grow, by descending source plus workspace.
[[nodiscard]] Order best_order_on(std::size_t device, const Holdings& holdings);

/// The caller's order. If sources are donated, also the best order of each device, and the greedy order, which always
/// leaves the fullest device with the least.
[[nodiscard]] std::vector<Order> orders_worth_trying(const Holdings& holdings, Index limit, bool donate);

/// For each array in turn, the most bytes that any device holds while it runs by itself.
[[nodiscard]] std::vector<Index> held_one_by_one(const Order& order, const Holdings& holdings, bool donate);

/// The largest of these numbers.
[[nodiscard]] Index most_held(const Order& order, const Holdings& holdings, bool donate);

/// A lower bound of the bytes that any order needs: the maximum over devices of the best order for that device.
[[nodiscard]] Index least_held(const Holdings& holdings, bool donate);

/// The fewest buckets for this order within the limit: each takes arrays as long as they fit, which never leaves later
/// ones worse off. pre: most_held(order, holdings, donate) <= limit.
[[nodiscard]] std::vector<Order> buckets_of(const Order& order, const Holdings& holdings, Index limit, bool donate);

}  // namespace reshard
