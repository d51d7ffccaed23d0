#include "src/boxes/balance.hpp"

#include <algorithm>
#include <compare>

namespace reshard {

namespace {

constexpr Index units_max = Index{1} << 18;  // of all entries together, so that squares do not overflow
constexpr Index no_cap = Index{1} << 31;     // above any load, in units
constexpr int passes_max = 20;               // for each size of a part

Index whole_part(Index elements, Index units, Index all_units) {
    return elements / all_units * units + elements % all_units * units / all_units;
}

// All numbers are in units of a few elements.
class Balance {
public:
    Balance(std::vector<Index> loads, std::vector<Index> caps) : loads_(std::move(loads)), caps_(std::move(caps)) {}

    void begin(Divided& entry, Index units) {
        entry.parts.assign(entry.options.size(), 0);
        const auto options = static_cast<Index>(entry.options.size());
        for (Index i = 0; i < options; ++i) {
            const Index part = units / options + (i < units % options ? 1 : 0);
            entry.parts[static_cast<std::size_t>(i)] = part;
            add(entry.options[static_cast<std::size_t>(i)], part);
        }
    }

    // Moves parts of this size within the entry while that helps. True if it has moved any.
    bool improve(Divided& entry, Index size) {
        bool moved = false;
        for (std::size_t from = 0; from < entry.options.size(); ++from)
            for (std::size_t to = 0; to < entry.options.size(); ++to)
                while (from != to && entry.parts[from] >= size && helps(entry, from, to, size)) {
                    entry.parts[from] -= size;
                    entry.parts[to] += size;
                    moved = true;
                }
        return moved;
    }

private:
    struct Cost {
        Index over = 0;  // squares of the parts above the caps
        Index all = 0;   // squares of the loads that have no cap
        auto operator<=>(const Cost&) const = default;
    };

    void add(const std::vector<LoadShare>& option, Index units) {
        for (const LoadShare& share : option) loads_[share.load] += share.times * units;
    }

    [[nodiscard]] Cost cost_of(const std::vector<LoadShare>& one, const std::vector<LoadShare>& other) const {
        Cost cost;
        std::vector<std::size_t> seen;
        for (const auto* option : {&one, &other})
            for (const LoadShare& share : *option) {
                if (std::ranges::find(seen, share.load) != seen.end()) continue;
                seen.push_back(share.load);
                const Index load = loads_[share.load];
                const Index over = std::max<Index>(load - caps_[share.load], 0);
                cost.over += over * over;
                if (caps_[share.load] == no_cap) cost.all += load * load;
            }
        return cost;
    }

    // Keeps the move if it helps.
    bool helps(const Divided& entry, std::size_t from, std::size_t to, Index size) {
        const std::vector<LoadShare>& less = entry.options[from];
        const std::vector<LoadShare>& more = entry.options[to];
        const Cost before = cost_of(less, more);
        add(less, -size);
        add(more, size);
        if (cost_of(less, more) < before) return true;
        add(less, size);
        add(more, -size);
        return false;
    }

    std::vector<Index> loads_;
    std::vector<Index> caps_;
};

}  // namespace

void balance(std::vector<Divided>& entries, std::vector<Index> loads, const std::vector<Index>& caps) {
    Index all = 0;
    for (const Divided& entry : entries) all += entry.elements;
    const Index unit = std::max<Index>(ceil_divide(all, units_max), 1);
    for (Index& load : loads) load /= unit;
    std::vector<Index> in_units;
    for (const Index cap : caps) in_units.push_back(cap == index_max ? no_cap : ceil_divide(cap, unit));
    Balance balance(std::move(loads), std::move(in_units));
    Index largest = 1;
    std::vector<Index> units;
    for (Divided& entry : entries) {
        units.push_back(entry.elements / unit);
        largest = std::max(largest, units.back());
        balance.begin(entry, units.back());
    }
    for (Index size = largest; size > 0; size /= 2)
        for (int pass = 0; pass < passes_max; ++pass) {
            bool moved = false;
            for (Divided& entry : entries) moved = balance.improve(entry, size) || moved;
            if (!moved) break;
        }
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
