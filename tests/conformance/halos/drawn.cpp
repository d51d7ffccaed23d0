#include "conformance/halos/drawn.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard::conformance {

namespace {

using test::below;
using test::Random;

Index shards_of(const DrawnLayout& layout, const DrawnDim& dim) {
    Index shards = 1;
    for (const std::size_t axis : dim.axes) shards *= layout.axes[axis];
    return shards;
}

std::vector<Index> even_shares(Index extent, Index shards) {
    std::vector<Index> shares;
    const Index block = (extent + shards - 1) / shards;
    for (Index left = extent; std::ssize(shares) < shards; left -= shares.back())
        shares.push_back(std::min(left, block));
    return shares;
}

std::vector<Index> random_shares(Random& random, Index extent, Index shards) {
    std::vector<Index> shares(static_cast<std::size_t>(shards), 0);
    for (Index i = 0; i < extent; ++i) ++shares[static_cast<std::size_t>(below(random, shards))];
    return shares;
}

// Each axis cuts one dimension or replicates.
void draw_axes(Random& random, DrawnLayout& layout) {
    for (DrawnDim& dim : layout.dims) dim.axes.clear();
    for (std::size_t axis = 0; axis < layout.axes.size(); ++axis) {
        const Index where = below(random, std::ssize(layout.dims) * 4 + 1);
        if (where == 0) continue;
        std::vector<std::size_t>& axes = layout.dims[static_cast<std::size_t>(where - 1) / 4].axes;
        axes.insert(axes.begin() + below(random, std::ssize(axes) + 1), axis);
    }
}

void draw_cut(Random& random, DrawnLayout& layout, DrawnDim& dim, bool one_block) {
    const Index shards = shards_of(layout, dim);
    dim.shares = even_shares(dim.extent, shards);
    dim.block = 0;
    dim.stated = shards > 1 && below(random, 3) == 0;
    if (dim.stated) dim.shares = random_shares(random, dim.extent, shards);
    if (!one_block && shards > 1 && below(random, 3) == 0) {
        dim.stated = false;
        dim.block = 1 + below(random, 3);
    }
}

void draw_halo(Random& random, DrawnDim& dim) {
    static constexpr std::array<Index, 6> widths = {0, 1, 1, 2, 3, 5};
    const auto width = [&] { return widths[static_cast<std::size_t>(below(random, std::ssize(widths)))]; };
    dim.before = width();
    dim.after = below(random, 2) == 0 ? dim.before : width();
    if (below(random, 12) == 0) dim.after += dim.extent + below(random, dim.extent + 1);
    dim.periodic = below(random, 2) == 0;
}

std::vector<Index> draw_mesh(Random& random, Index ranks) {
    std::vector<Index> axes;
    for (Index left = ranks; left > 0;) {
        const Index size = 1 + below(random, std::min<Index>(left, 4));
        axes.push_back(size);
        left /= size;
        if (below(random, 4) == 0 || axes.size() == 3) break;
    }
    return axes;
}

// The position of a device in the mesh.
std::optional<Index> position_in(const DrawnLayout& layout, Index device) {
    if (layout.devices.empty()) return device < devices_of(layout) ? std::optional(device) : std::nullopt;
    const auto at = std::ranges::find(layout.devices, device);
    return at == layout.devices.end() ? std::nullopt : std::optional<Index>(at - layout.devices.begin());
}

}  // namespace

DrawnLayout draw_layout(Random& random, Index ranks) {
    DrawnLayout layout;
    layout.axes = draw_mesh(random, ranks);
    layout.dims.resize(static_cast<std::size_t>(1 + below(random, 3)));
    draw_axes(random, layout);
    for (DrawnDim& dim : layout.dims) {
        dim.extent = below(random, 12) == 0 ? 0 : 1 + below(random, 9);
        if (below(random, 5) > 0) draw_halo(random, dim);
        draw_cut(random, layout, dim, dim.before + dim.after > 0);
    }
    return layout;
}

DrawnLayout draw_source(Random& random, const DrawnLayout& of) {
    DrawnLayout source = of;
    draw_axes(random, source);
    for (DrawnDim& dim : source.dims) {
        dim.before = dim.after = 0;
        dim.periodic = false;
        draw_cut(random, source, dim, false);
    }
    return source;
}

DrawnLayout draw_source_elsewhere(Random& random, const DrawnLayout& of, Index ranks) {
    DrawnLayout source = of;
    source.axes = draw_mesh(random, ranks);
    draw_devices(random, source, ranks);
    source = draw_source(random, source);
    for (DrawnDim& dim : source.dims) {
        if (dim.block > 0 || below(random, 2) == 0) continue;
        draw_halo(random, dim);
        dim.periodic = false;
    }
    return source;
}

void draw_devices(Random& random, DrawnLayout& layout, Index ranks) {
    std::vector<Index> all(static_cast<std::size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    layout.devices.clear();
    while (std::ssize(layout.devices) < devices_of(layout)) {
        const auto next = all.begin() + below(random, std::ssize(all));
        layout.devices.push_back(*next);
        all.erase(next);
    }
}

std::string mesh_text(const DrawnLayout& layout) {
    std::string text;
    for (std::size_t k = 0; k < layout.axes.size(); ++k)
        text += fmt::format("{}a{}={}", k > 0 ? "," : "", k, layout.axes[k]);
    return layout.devices.empty() ? text : text + fmt::format("[{}]", fmt::join(layout.devices, ","));
}

std::string text_of(const DrawnLayout& layout, const std::string& dtype) {
    std::string text = dtype + "[";
    for (std::size_t k = 0; k < layout.dims.size(); ++k) {
        const DrawnDim& dim = layout.dims[k];
        text += fmt::format("{}{}", k > 0 ? "," : "", dim.extent);
        if (!dim.axes.empty()) text += fmt::format("@(a{})", fmt::join(dim.axes, ",a"));
        if (dim.stated) text += fmt::format("[{}]", fmt::join(dim.shares, ","));
        if (dim.block > 0) text += fmt::format("/{}", dim.block);
        if (dim.before + dim.after > 0)
            text += fmt::format("~({},{}){}", dim.before, dim.after, dim.periodic ? "%" : "");
    }
    return text + "]";
}

Index devices_of(const DrawnLayout& layout) {
    Index devices = 1;
    for (const Index size : layout.axes) devices *= size;
    return devices;
}

std::vector<Index> owned_indices(const DrawnLayout& layout, std::size_t dim, Index device) {
    const auto position = position_in(layout, device);
    if (!position) return {};
    const DrawnDim& cut = layout.dims[dim];
    std::vector<Index> digits(layout.axes.size());
    Index rest = *position;
    for (std::size_t axis = digits.size(); axis-- > 0; rest /= layout.axes[axis])
        digits[axis] = rest % layout.axes[axis];
    Index shard = 0;
    for (const std::size_t axis : cut.axes) shard = shard * layout.axes[axis] + digits[axis];
    std::vector<Index> indices;
    if (cut.block > 0) {
        for (Index i = 0; i < cut.extent; ++i)
            if (i / cut.block % shards_of(layout, cut) == shard) indices.push_back(i);
        return indices;
    }
    Index begin = 0;
    for (Index one = 0; one < shard; ++one) begin += cut.shares[static_cast<std::size_t>(one)];
    for (Index i = 0; i < cut.shares[static_cast<std::size_t>(shard)]; ++i) indices.push_back(begin + i);
    return indices;
}

std::vector<Index> cells_of(const DrawnLayout& layout, std::size_t dim, Index device) {
    for (std::size_t other = 0; other < layout.dims.size(); ++other)
        if (owned_indices(layout, other, device).empty()) return {};
    const std::vector<Index> own = owned_indices(layout, dim, device);
    const DrawnDim& cut = layout.dims[dim];
    if (cut.before + cut.after == 0) return own;
    std::vector<Index> cells;
    for (Index cell = own.front() - cut.before; cell < own.back() + 1 + cut.after; ++cell) {
        const Index inside = ((cell % cut.extent) + cut.extent) % cut.extent;
        cells.push_back(cut.periodic || inside == cell ? inside : -1);
    }
    return cells;
}

std::vector<Index> numbers_of(const DrawnLayout& layout, const std::vector<std::vector<Index>>& sides) {
    std::vector<Index> numbers = {0};
    for (std::size_t k = 0; k < sides.size(); ++k) {
        std::vector<Index> longer;
        for (const Index number : numbers)
            for (const Index index : sides[k])
                longer.push_back(number < 0 || index < 0 ? -1 : number * layout.dims[k].extent + index);
        numbers = std::move(longer);
    }
    return numbers;
}

std::vector<Index> array_of(const DrawnLayout& layout, Index device) {
    std::vector<std::vector<Index>> sides;
    for (std::size_t k = 0; k < layout.dims.size(); ++k) sides.push_back(cells_of(layout, k, device));
    return numbers_of(layout, sides);
}

std::vector<bool> block_of(const DrawnLayout& layout, Index device) {
    std::vector<bool> inside = {true};
    for (std::size_t k = 0; k < layout.dims.size(); ++k) {
        const Index cells = std::ssize(cells_of(layout, k, device));
        const Index first = layout.dims[k].before;
        const Index end = first + std::ssize(owned_indices(layout, k, device));
        std::vector<bool> longer;
        for (const bool so_far : inside)
            for (Index cell = 0; cell < cells; ++cell) longer.push_back(so_far && cell >= first && cell < end);
        inside = std::move(longer);
    }
    return inside;
}

bool in_one_row(const DrawnLayout& layout, Index one_device, Index other_device) {
    const auto first = position_in(layout, one_device), second = position_in(layout, other_device);
    if (!first || !second) return false;
    Index one = *first, other = *second;
    for (std::size_t axis = layout.axes.size(); axis-- > 0;) {
        const bool cuts = std::ranges::any_of(
            layout.dims, [&](const DrawnDim& dim) { return std::ranges::find(dim.axes, axis) != dim.axes.end(); });
        if (!cuts && one % layout.axes[axis] != other % layout.axes[axis]) return false;
        one /= layout.axes[axis];
        other /= layout.axes[axis];
    }
    return true;
}

std::vector<Index> tile_of(const DrawnLayout& layout, Index device) {
    std::vector<std::vector<Index>> sides;
    for (std::size_t k = 0; k < layout.dims.size(); ++k) sides.push_back(owned_indices(layout, k, device));
    return numbers_of(layout, sides);
}

}  // namespace reshard::conformance
