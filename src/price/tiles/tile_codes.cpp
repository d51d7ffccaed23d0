#include "src/price/tiles/tile_codes.hpp"

#include <algorithm>
#include <numeric>

#include "reshard/planner/refinement.hpp"

namespace reshard {

namespace {

// The weight of the digit in the number that the atoms make.
Index weight_of(std::span<const Atom> atoms, Atom digit) {
    Index below = combinations(atoms);
    for (const Atom& atom : atoms) {
        below /= atom.size;
        if (is_within(digit, atom)) return below * (digit.stride / atom.stride);
    }
    return 0;
}

}  // namespace

std::optional<TileCodes> TileCodes::make(const Layout& layout, const AtomList& team,
                                         std::span<const std::size_t> dims) {
    std::vector<Index> borders;
    borders.reserve(32);
    borders.insert(borders.end(), {1, device_count(layout)});
    append_borders(layout, borders);
    append_borders(team, borders);
    auto digits = refinement(std::move(borders));
    if (!digits) return std::nullopt;
    TileCodes made;
    made.count_ = device_count(layout);
    for (const std::size_t dim : dims) {
        made.given_.push_back({dim, shard_count(layout.dims[dim]), 1});
        made.tiles_ *= made.given_.back().shards;
    }
    const Index teams = combinations(team);
    made.replicas_ = made.count_ / (made.tiles_ * teams);
    made.digits_ = *std::move(digits);
    made.adds_.reserve(made.digits_.size() * (dims.size() + 1));
    for (const Atom& digit : made.digits_) {
        for (const std::size_t dim : dims) made.adds_.push_back(weight_of(layout.dims[dim].atoms, digit));
        made.adds_.push_back(weight_of(team, digit));
    }
    made.list_devices(layout.mesh);
    for (std::size_t i = 0; i < dims.size(); ++i) made.shards_.push_back(made.number_of(i));
    if (teams > 1) made.teams_ = made.number_of(dims.size());
    return made;
}

void TileCodes::list_devices(const Mesh& mesh) {
    if (mesh.devices.in_order()) return;
    devices_ = mesh.devices.ascending();
    const std::span<const Index> listed = mesh.devices.devices();
    if (std::ranges::is_sorted(listed)) return;
    positions_.resize(listed.size());
    std::iota(positions_.begin(), positions_.end(), 0);
    std::ranges::sort(positions_, {}, [&](Index position) { return listed[static_cast<std::size_t>(position)]; });
}

// By place.
std::vector<Index> TileCodes::number_of(std::size_t number) const {
    std::vector<Index> values;  // by position
    values.reserve(devices());
    values.push_back(0);
    for (std::size_t digit = digits_.size(); digit-- > 0;) {
        const std::size_t count = values.size();
        const Index step = adds(digit, number);
        for (Index value = 1; value < digits_[digit].size; ++value)
            for (std::size_t i = 0; i < count; ++i) values.push_back(values[i] + value * step);
    }
    if (positions_.empty()) return values;
    std::vector<Index> placed;
    placed.reserve(devices());
    for (const Index position : positions_) placed.push_back(values[static_cast<std::size_t>(position)]);
    return placed;
}

Index TileCodes::last_device() const { return devices_.empty() ? count_ - 1 : devices_.back(); }

std::size_t TileCodes::place_from(std::size_t from, Index device) const {
    if (devices_.empty()) return std::clamp(static_cast<std::size_t>(device), from, devices());
    const std::span<const Index> rest = devices_.subspan(from);
    return from + static_cast<std::size_t>(std::ranges::lower_bound(rest, device) - rest.begin());
}

void TileCodes::number(Index block) {
    std::vector<std::pair<Index, std::size_t>> order;  // values among neighbours
    order.reserve(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
        Index values = 1;
        for (std::size_t digit = 0; digit < digits_.size(); ++digit)
            if (adds(digit, i) > 0)
                values *= std::clamp<Index>(ceil_divide(block, digits_[digit].stride), 1, digits_[digit].size);
        order.emplace_back(values, i);
    }
    std::ranges::sort(order);
    std::vector<CodeDim> dims;
    dims.reserve(given_.size());
    for (const auto& [values, i] : order) dims.push_back(given_[i]);
    const auto same = [](const CodeDim& a, const CodeDim& b) { return a.dim == b.dim; };
    if (!codes_.empty() && std::ranges::equal(dims, dims_, same)) return;
    Index below = tiles_;
    codes_.assign(devices(), 0);
    for (std::size_t place = 0; place < teams_.size(); ++place) codes_[place] = teams_[place] * tiles_;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        below /= dims[i].shards;
        dims[i].below = below;
        const std::vector<Index>& shards = shards_[order[i].second];
        for (std::size_t place = 0; place < codes_.size(); ++place) codes_[place] += shards[place] * below;
    }
    dims_ = std::move(dims);
}

}  // namespace reshard
