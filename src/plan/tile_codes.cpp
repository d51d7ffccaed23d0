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
        made.lists_.push_back(&layout.dims[dim]);
        made.numbers_.push_back(dim);
        made.tiles_ *= shard_count(layout.dims[dim]);
    }
    made.replicas_ = made.count_ / (made.tiles_ * combinations(team));
    for (auto atom = atoms->rbegin(); atom != atoms->rend(); ++atom) {
        Digit digit{atom->size, atom->stride, weight_of(team, *atom), {}};
        for (const Dim* dim : made.lists_) digit.shard.push_back(weight_of(dim->atoms, *atom));
        made.digits_.push_back(std::move(digit));
    }
    if (layout.mesh.devices.in_order()) return made;
    made.devices_ = layout.mesh.devices.ascending();
    const std::span<const Index> listed = layout.mesh.devices.devices();
    if (std::ranges::is_sorted(listed)) return made;
    made.positions_.resize(listed.size());
    std::iota(made.positions_.begin(), made.positions_.end(), 0);
    std::ranges::sort(made.positions_, {}, [&](Index position) { return listed[static_cast<std::size_t>(position)]; });
    return made;
}

Index TileCodes::last_device() const { return devices_.empty() ? count_ - 1 : devices_.back(); }

std::size_t TileCodes::place_from(std::size_t from, Index device) const {
    if (devices_.empty()) return std::clamp(static_cast<std::size_t>(device), from, devices());
    const std::span<const Index> rest = devices_.subspan(from);
    return from + static_cast<std::size_t>(std::ranges::lower_bound(rest, device) - rest.begin());
}

void TileCodes::number(Index block) {
    std::vector<std::pair<Index, std::size_t>> order;  // values among neighbours
    for (std::size_t i = 0; i < lists_.size(); ++i) {
        Index values = 1;
        for (const Digit& digit : digits_)
            if (digit.shard[i] > 0) values *= std::clamp<Index>(ceil_divide(block, digit.stride), 1, digit.size);
        order.emplace_back(values, i);
    }
    std::ranges::sort(order);
    std::vector<Index> below(lists_.size());
    Index product = 1;
    std::vector<CodeDim> dims;
    for (auto one = order.rbegin(); one != order.rend(); ++one) {
        const std::size_t i = one->second;
        below[i] = product;
        dims.insert(dims.begin(), {numbers_[i], shard_count(*lists_[i]), product});
        product *= dims.front().shards;
    }
    const auto same = [](const CodeDim& a, const CodeDim& b) { return a.dim == b.dim; };
    if (!codes_.empty() && std::ranges::equal(dims, dims_, same)) return;
    dims_ = std::move(dims);
    std::vector<Index> by_position = {0};
    by_position.reserve(devices());
    for (const Digit& digit : digits_) {
        Index weight = digit.team * tiles_;
        for (std::size_t i = 0; i < below.size(); ++i) weight += digit.shard[i] * below[i];
        const std::size_t count = by_position.size();
        for (Index value = 1; value < digit.size; ++value)
            for (std::size_t i = 0; i < count; ++i) by_position.push_back(by_position[i] + value * weight);
    }
    if (positions_.empty()) {
        codes_ = std::move(by_position);
        return;
    }
    codes_.clear();
    for (const Index position : positions_) codes_.push_back(by_position[static_cast<std::size_t>(position)]);
}

}  // namespace reshard
