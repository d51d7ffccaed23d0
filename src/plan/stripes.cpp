#include "src/plan/stripes.hpp"

#include <algorithm>
#include <cassert>

#include "reshard/planner/refinement.hpp"
#include "reshard/planner/step.hpp"

namespace reshard {

bool blocks_are_digits(const Layout& before, const Layout& after, const Network& network) {
    if (network.empty()) return true;
    if (!before.mesh.devices.in_order()) return false;
    const Index devices = device_count(before);
    std::vector<Index> borders = {1, devices};
    for (const Index block : network)
        if (block < devices) borders.push_back(block);
    Index low = 1;
    for (auto axis = before.mesh.axes.rbegin(); axis != before.mesh.axes.rend(); ++axis)
        borders.push_back(low *= axis->size);
    append_borders(before, borders);
    append_borders(after, borders);
    return form_chain(borders);
}

AtomList team_atoms(const Layout& before, const Layout& after, const Network& network) {
    if (!same_order(before.mesh, after.mesh) || !blocks_are_digits(before, after, network)) return {};
    return idle_atoms(before, after);
}

std::pair<Index, Index> Stripes::served(const Demand& demand, std::size_t place) const {
    const auto within = [&](Index offset) { return std::clamp<Index>(offset - demand.offset, 0, demand.elements); };
    const auto number = static_cast<Index>(place);
    return {within(number * part), within((number + 1) * part)};
}

namespace {

// Holders and demands laid end to end.
Stripes laid_out(std::vector<Index> holders, std::vector<Demand> demands) {
    Index total = 0;
    for (Demand& demand : demands) {
        demand.offset = total;
        total += demand.elements;
    }
    const Index part = ceil_divide(total, static_cast<Index>(holders.size()));
    return {std::move(holders), std::move(demands), part};
}

// The holders in the least block around a device that has any: how large it is, and the first of them.
struct Around {
    std::size_t distance = 0;
    std::size_t first = 0;
    friend auto operator<=>(const Around&, const Around&) = default;
};

bool together(const Network& network, std::size_t distance, Index a, Index b) {
    return distance == network.size() || a / network[distance] == b / network[distance];
}

// Blocks are runs of devices, so the nearest holder is a neighbour.
Around around(const Network& network, const std::vector<Index>& holders, Index device) {
    auto next = static_cast<std::size_t>(std::ranges::lower_bound(holders, device) - holders.begin());
    std::size_t least = network.size();
    if (next < holders.size()) least = distance(network, holders[next], device);
    if (next > 0) least = std::min(least, distance(network, holders[next - 1], device));
    while (next > 0 && together(network, least, holders[next - 1], device)) --next;
    return {least, next};
}

}  // namespace

std::vector<Stripes> stripes_of(const Network& network, std::vector<Index> holders, std::vector<Demand> demands) {
    assert(!holders.empty());
    std::vector<Stripes> groups;
    if (network.empty() || holders.size() == 1) {
        groups.push_back(laid_out(std::move(holders), std::move(demands)));
        return groups;
    }
    std::vector<std::pair<Around, Demand>> placed;
    placed.reserve(demands.size());
    for (const Demand& demand : demands) placed.emplace_back(around(network, holders, demand.device), demand);
    std::ranges::stable_sort(placed, {}, &std::pair<Around, Demand>::first);
    for (std::size_t begin = 0, end = 0; begin < placed.size(); begin = end) {
        const Around& here = placed[begin].first;
        std::vector<Demand> wanted;
        for (; end < placed.size() && placed[end].first == here; ++end) wanted.push_back(placed[end].second);
        std::size_t last = here.first;
        while (last < holders.size() && together(network, here.distance, holders[last], holders[here.first])) ++last;
        const auto at = [&](std::size_t place) { return holders.begin() + static_cast<std::ptrdiff_t>(place); };
        groups.push_back(laid_out({at(here.first), at(last)}, std::move(wanted)));
    }
    return groups;
}

std::vector<std::pair<Index, Index>> partners(const Network& network, const std::vector<Index>& holders,
                                              const std::vector<Index>& wanting) {
    assert(holders.size() == wanting.size());
    std::vector<std::pair<Index, Index>> pairs;
    std::vector<Index> givers;
    std::vector<Index> takers;
    std::ranges::set_difference(holders, wanting, std::back_inserter(givers));
    std::ranges::set_difference(wanting, holders, std::back_inserter(takers));
    for (const Index device : holders)
        if (std::ranges::binary_search(wanting, device)) pairs.emplace_back(device, device);
    for (std::size_t level = 0; level <= network.size() && !givers.empty(); ++level) {
        std::vector<Index> left_givers;
        std::vector<Index> left_takers;
        std::size_t i = 0;
        std::size_t j = 0;
        while (i < givers.size() || j < takers.size()) {
            const bool both = i < givers.size() && j < takers.size();
            if (both && together(network, level, givers[i], takers[j]))
                pairs.emplace_back(givers[i++], takers[j++]);
            else if (j == takers.size() || (both && givers[i] < takers[j]))
                left_givers.push_back(givers[i++]);
            else
                left_takers.push_back(takers[j++]);
        }
        givers = std::move(left_givers);
        takers = std::move(left_takers);
    }
    return pairs;
}

}  // namespace reshard
