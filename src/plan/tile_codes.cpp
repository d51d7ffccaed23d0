#include "src/plan/tile_codes.hpp"

#include <algorithm>
#include <numeric>

#include "reshard/algebra/refinement.hpp"

namespace reshard {

namespace {

// What a value of the digit adds to the number that the atoms make.
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
    std::vector<Index> borders = {1, device_count(layout)};
    append_borders(layout, borders);
    append_borders(team, borders);
    const auto atoms = refinement(std::move(borders));
    if (!atoms) return std::nullopt;
    TileCodes made;
    made.count_ = device_count(layout);
    for (const std::size_t dim : dims) {
        made.given_.push_back({dim, shard_count(layout.dims[dim]), 1});
        made.tiles_ *= made.given_.back().shards;
    }
    const Index teams = combinations(team);
    made.replicas_ = made.count_ / (made.tiles_ * teams);
    for (auto atom = atoms->rbegin(); atom != atoms->rend(); ++atom) {
        Digit digit{atom->size, atom->stride, {}};
        for (const std::size_t dim : dims) digit.adds.push_back(weight_of(layout.dims[dim].atoms, *atom));
        digit.adds.push_back(weight_of(team, *atom));
        made.digits_.push_back(std::move(digit));
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
    std::vector<Index> values = {0};  // by position
    values.reserve(devices());
    for (const Digit& digit : digits_) {
        const std::size_t count = values.size();
        for (Index value = 1; value < digit.size; ++value)
            for (std::size_t i = 0; i < count; ++i) values.push_back(values[i] + value * digit.adds[number]);
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
    for (std::size_t i = 0; i < given_.size(); ++i) {
        Index values = 1;
        for (const Digit& digit : digits_)
            if (digit.adds[i] > 0) values *= std::clamp<Index>(ceil_divide(block, digit.stride), 1, digit.size);
        order.emplace_back(values, i);
    }
    std::ranges::sort(order);
    std::vector<CodeDim> dims;
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
