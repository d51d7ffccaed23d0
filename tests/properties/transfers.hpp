// Counts the load of a step on the levels of a machine, transfer by transfer.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "reshard/planner/cost.hpp"

namespace reshard::test {

/// The elements that each device sends and receives over each level.
class Ledger {
public:
    Ledger(const Machine& machine, Index world) : machine_(machine), world_(static_cast<std::size_t>(world)) {
        for (auto* all : {&in_, &out_}) all->resize(machine.levels.size() * world_);
    }

    void add(Index from, Index to, Index elements) {
        std::size_t level = 0;
        while (level + 1 < machine_.levels.size() &&
               from / machine_.levels[level].devices != to / machine_.levels[level].devices)
            ++level;
        out_[level * world_ + static_cast<std::size_t>(from)] += elements;
        in_[level * world_ + static_cast<std::size_t>(to)] += elements;
    }

    /// The load of the busiest device on each level, or of the busiest block if devices share a connection.
    [[nodiscard]] std::vector<Index> busiest() const {
        std::vector<Index> most(machine_.levels.size());
        for (std::size_t level = 0; level < most.size(); ++level) {
            const bool shared = level > 0 && machine_.levels[level].shared;
            const Index block = shared ? machine_.levels[level - 1].devices : 1;
            for (const auto* all : {&in_, &out_}) {
                std::vector<Index> sums(world_ / static_cast<std::size_t>(block) + 1);
                for (std::size_t device = 0; device < world_; ++device)
                    sums[device / static_cast<std::size_t>(block)] += (*all)[level * world_ + device];
                most[level] = std::max(most[level], *std::ranges::max_element(sums));
            }
        }
        return most;
    }

private:
    const Machine& machine_;
    std::size_t world_;
    std::vector<Index> in_;
    std::vector<Index> out_;
};

/// The busiest load on each level, without making schedules; nullopt if there are too many transfers to count.
/// pre: a typed exchange, or a collective.
[[nodiscard]] std::optional<std::vector<Index>> loads(const Layout& before, const Step& step, const Move& move,
                                                      const Machine& machine, Index transfers_max);

}  // namespace reshard::test
