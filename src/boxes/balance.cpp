#include "src/boxes/balance.hpp"

#include <algorithm>

namespace reshard {

namespace {

constexpr Index units_max = Index{1} << 18;  // of all entries together, so that squares do not overflow
constexpr Index finest = 64;                 // limits move by a 64th in the last rounds
constexpr int passes_max = 200;              // over all entries, for one set of limits
constexpr Index work_max = Index{1} << 24;   // options looked at in all

Index whole_part(Index elements, Index units, Index all_units) {
    return elements / all_units * units + elements % all_units * units / all_units;
}

using LoadLimits = std::vector<Index>;  // one for each group

// All numbers are in units of a few elements.
class Balance {
public:
    Balance(std::vector<Divided>& entries, const std::vector<LoadGroup>& groups, std::vector<Index> loads)
        : entries_(entries), groups_(groups), loads_(std::move(loads)) {
        for (std::size_t group = 0; group < groups.size(); ++group)
            group_of_.insert(group_of_.end(), groups[group].loads, group);
        for (const Divided& entry : entries) options_ += std::ssize(entry.options);
    }

    // Divides the entry equally among the options that cost least by themselves.
    void begin(Divided& entry, Index units) {
        std::vector<Index> costs;
        for (const auto& option : entry.options) costs.push_back(cost_alone(option));
        const Index least = std::ranges::min(costs);
        const Index cheap = std::ranges::count(costs, least);
        entry.parts.assign(entry.options.size(), 0);
        Index given = 0;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            if (costs[i] != least) continue;
            entry.parts[i] = units / cheap + (given++ < units % cheap ? 1 : 0);
            add(entry.options[i], entry.parts[i]);
        }
    }

    void improve() {
        for (Index finer = 2; finer <= finest; finer *= 2)
            for (bool better = true; better && work_ < work_max;) {
                better = false;
                for (std::size_t group = 0; group < groups_.size(); ++group) better = improve(group, finer) || better;
            }
    }

private:
    [[nodiscard]] Index cost_alone(const std::vector<LoadShare>& option) const {
        Index cost = 0;
        for (const LoadShare& share : option) cost += share.times * groups_[group_of_[share.load]].price;
        return cost;
    }

    void add(const std::vector<LoadShare>& option, Index units) {
        for (const LoadShare& share : option) loads_[share.load] += share.times * units;
    }

    [[nodiscard]] LoadLimits largest() const {
        LoadLimits most(groups_.size());
        for (std::size_t load = 0; load < loads_.size(); ++load)
            most[group_of_[load]] = std::max(most[group_of_[load]], loads_[load]);
        return most;
    }

    [[nodiscard]] Index cost() const {
        Index cost = 0;
        const LoadLimits most = largest();
        for (std::size_t group = 0; group < groups_.size(); ++group) cost += groups_[group].price * most[group];
        return cost;
    }

    // Lowers the limit of a group by its part of 1 / finer. Other limits stay, or one or all of them rise for a part of
    // the gain.
    bool improve(std::size_t group, Index finer) {
        const LoadLimits now = largest();
        const Index less = ceil_divide(now[group], finer);
        if (less == 0) return false;
        const Index gain = groups_[group].price * less;
        for (std::size_t raised = 0; raised <= groups_.size() + 1; ++raised) {
            if (raised == group) continue;
            LoadLimits limits = now;
            limits[group] -= less;
            for (std::size_t other = 0; other < groups_.size(); ++other) {
                const bool all = raised == groups_.size() + 1;
                if (other == group || (!all && other != raised)) continue;
                const Index parts = all ? 2 * (std::ssize(groups_) - 1) : 2;
                limits[other] += gain / (parts * std::max<Index>(groups_[other].price, 1));
            }
            if (keep_within(limits)) return true;
        }
        return false;
    }

    // Moves parts towards these limits, and keeps that if it costs less.
    bool keep_within(const LoadLimits& limits) {
        const Index before = cost();
        const std::vector<Index> loads = loads_;
        std::vector<std::vector<Index>> parts;
        for (const Divided& entry : entries_) parts.push_back(entry.parts);
        descend(limits);
        if (cost() < before) return true;
        loads_ = loads;
        for (std::size_t i = 0; i < parts.size(); ++i) entries_[i].parts = std::move(parts[i]);
        return false;
    }

    // Makes the sum of the squares of all that is above the limits smaller, until little changes.
    void descend(const LoadLimits& limits) {
        Index last = index_max;
        for (int pass = 0; pass < passes_max && work_ < work_max; ++pass) {
            const Index left = above(limits);
            if (left == 0 || left >= last - last / 64) return;
            last = left;
            for (Divided& entry : entries_) move_part(entry, limits);
            work_ += options_;
        }
    }

    [[nodiscard]] Index over(std::size_t load, const LoadLimits& limits) const {
        return std::max<Index>(loads_[load] - limits[group_of_[load]], 0);
    }

    [[nodiscard]] Index above(const LoadLimits& limits) const {
        Index sum = 0;
        for (std::size_t load = 0; load < loads_.size(); ++load) sum += over(load, limits) * over(load, limits);
        return sum;
    }

    // Some options add more to the excess over the limits. Moves a part from the worst option to the best one.
    void move_part(Divided& entry, const LoadLimits& limits) {
        std::size_t from = entry.options.size();
        std::size_t to = 0;
        Index most = 0;
        Index least = index_max;
        for (std::size_t i = 0; i < entry.options.size(); ++i) {
            Index slope = 0;
            for (const LoadShare& share : entry.options[i]) slope += share.times * over(share.load, limits);
            if (entry.parts[i] > 0 && (from == entry.options.size() || slope > most)) {
                from = i;
                most = slope;
            }
            if (slope < least) {
                to = i;
                least = slope;
            }
        }
        if (from == entry.options.size() || most <= least) return;
        const Index bend = bend_of(entry.options[from], entry.options[to]);
        if (bend >= 2 * (most - least)) return;  // a move of one unit would go too far
        const Index units = std::min(entry.parts[from], std::max<Index>((most - least) / bend, 1));
        entry.parts[from] -= units;
        entry.parts[to] += units;
        add(entry.options[from], -units);
        add(entry.options[to], units);
    }

    // How fast the slope changes if parts move from one option to another, at most.
    [[nodiscard]] static Index bend_of(const std::vector<LoadShare>& from, const std::vector<LoadShare>& to) {
        Index bend = 0;
        for (const LoadShare& more : to) {
            const auto less = std::ranges::find(from, more.load, &LoadShare::load);
            const Index change = more.times - (less == from.end() ? 0 : less->times);
            bend += change * change;
        }
        for (const LoadShare& less : from)
            if (std::ranges::find(to, less.load, &LoadShare::load) == to.end()) bend += less.times * less.times;
        return std::max<Index>(bend, 1);
    }

    std::vector<Divided>& entries_;
    const std::vector<LoadGroup>& groups_;
    std::vector<Index> loads_;
    std::vector<std::size_t> group_of_;
    Index options_ = 0;
    Index work_ = 0;
};

}  // namespace

void balance(std::vector<Divided>& entries, const std::vector<LoadGroup>& groups, std::vector<Index> loads) {
    Index all = 0;
    for (const Divided& entry : entries) all += entry.elements;
    const Index unit = std::max<Index>(ceil_divide(all, units_max), 1);
    for (Index& load : loads) load /= unit;
    Balance balance(entries, groups, std::move(loads));
    std::vector<Index> units;
    for (Divided& entry : entries) {
        units.push_back(entry.elements / unit);
        balance.begin(entry, units.back());
    }
    balance.improve();
    for (std::size_t i = 0; i < entries.size(); ++i) {
        Divided& entry = entries[i];
        Index done = 0;
        Index taken = 0;
        for (Index& part : entry.parts) {
            taken += part;
            const Index end = units[i] == 0 ? entry.elements : whole_part(entry.elements, taken, units[i]);
            part = end - done;
            done = end;
        }
    }
}

}  // namespace reshard
