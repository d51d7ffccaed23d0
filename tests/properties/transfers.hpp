// What a step carries over the levels of a machine, counted transfer by transfer.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "reshard/planner/cost.hpp"

namespace reshard::test {

/// What each device sends and receives over each level.
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

    /// By level, of the busiest device, or of the busiest block where devices share a connection.
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

/// The busiest by level, without making schedules; nullopt where there are more transfers than can be looked at.
/// pre: a typed exchange, or a collective.
[[nodiscard]] std::optional<std::vector<Index>> loads(const Layout& before, const Step& step, const Move& move,
                                                      const Machine& machine, Index transfers_max);

}  // namespace reshard::test
