// Prices of moves that change one mesh axis after another, as torch's own do. reshard.torch asks for all ways of a pair
// at once.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "python/bindings/core.hpp"
#include "python/bindings/errors.hpp"
#include "reshard/planner/integer.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

// A placement is the dimension that it cuts, -1 for the whole, or -2 for a sum.
constexpr Index held_partial = -2;

// A mesh axis, its placement after, and whether its placement before or after is strided.
using AxisChange = std::tuple<std::size_t, Index, bool>;
using AxisCall = std::tuple<const char*, Index, Index>;  // kind, ranks, bytes that each rank receives

// The largest tile of an array, and what the changes so far cost.
class AxisTile {
public:
    AxisTile(std::vector<Index> shape, Index item_bytes, std::vector<Index> sizes, std::vector<Index> held, bool native)
        : shape_(std::move(shape)),
          item_bytes_(item_bytes),
          sizes_(std::move(sizes)),
          held_(std::move(held)),
          native_(native),
          parts_(shape_.size(), 1) {
        for (std::size_t axis = 0; axis < held_.size(); ++axis)
            if (held_[axis] >= 0) parts_.at(held_[axis]) *= sizes_.at(axis);
        first_ = peak_ = most_ = bytes_ = tile_bytes();
    }

    // A key that sorts changes. The change that makes the tile smaller for the fewest bytes is first.
    std::tuple<bool, bool, double> haste(const AxisChange& change) const {
        const auto [axis, to, strided] = change;
        if (to < 0) return {true, true, 0};
        const Index part = ceil_divide(shape_.at(to), parts_[to]), ranks = sizes_.at(axis);
        return {false, held_.at(axis) == held_partial,
                static_cast<double>(ceil_divide(part, ranks) * ranks) / static_cast<double>(std::max<Index>(part, 1))};
    }

    void take(const AxisChange& change) {
        const auto [axis, to, strided] = change;
        const Index ranks = sizes_.at(axis), from = held_.at(axis), before = bytes_;
        if (from >= 0) parts_[from] /= ranks;
        if (to >= 0) parts_.at(to) *= ranks;
        held_[axis] = to;
        bytes_ = tile_bytes();
        if (ranks == 1) return;
        Index whole = before;
        if (from >= 0 && to >= 0 && !strided && native_) {
            calls_.emplace_back("all_to_all", ranks, padded(from, to, ranks) * (ranks - 1) / ranks);
            copied_ += 2 * before;
        } else if (from >= 0) {
            whole = before * ranks;
            calls_.emplace_back("all_gather", ranks, before * (ranks - 1));
            copied_ += (from != 0 || strided ? whole : 0) + (to >= 0 ? bytes_ : 0);
        } else if (from == held_partial && (to < 0 || strided)) {
            calls_.emplace_back("all_reduce", ranks, 2 * before * (ranks - 1) / ranks);
        } else if (from == held_partial) {
            calls_.emplace_back("reduce_scatter", ranks, bytes_ * (ranks - 1));
            copied_ += to != 0 ? before : 0;
        } else {
            copied_ += bytes_;
        }
        peak_ = std::max({peak_, whole, bytes_});
        most_ = std::max(most_, first_ + before + whole + bytes_);
    }

    // The calls, bytes that a rank copies, bytes of the largest tensor, and the most bytes at once.
    auto price() && { return std::tuple(std::move(calls_), copied_, peak_, most_); }

private:
    Index tile_bytes() const {
        Index bytes = item_bytes_;
        for (std::size_t dim = 0; dim < shape_.size(); ++dim) bytes *= ceil_divide(shape_[dim], parts_[dim]);
        return bytes;
    }

    // The tile of an all_to_all, whose two dimensions are padded to equal parts. The parts are those after the change.
    Index padded(Index from, Index to, Index ranks) const {
        Index bytes = item_bytes_;
        for (Index dim = 0; dim < std::ssize(shape_); ++dim) {
            const Index held = ceil_divide(shape_[dim], dim == to ? parts_[dim] / ranks : parts_[dim]);
            bytes *= dim == to ? ceil_divide(held, ranks) * ranks : dim == from ? ceil_divide(held, ranks) : held;
        }
        return bytes;
    }

    std::vector<Index> shape_;
    Index item_bytes_;
    std::vector<Index> sizes_, held_;
    bool native_;
    std::vector<Index> parts_;
    Index bytes_ = 0, first_ = 0, peak_ = 0, most_ = 0, copied_ = 0;
    std::vector<AxisCall> calls_;
};

// Which of the changes in `left` comes next. Axes that cut one dimension stay in their order.
std::size_t next_change(const AxisTile& tile, const std::vector<AxisChange>& way,
                        const std::vector<std::size_t>& left) {
    const auto waits = [&](std::size_t one) {
        const auto [axis, to, strided] = way[one];
        return to >= 0 && std::ranges::any_of(left, [&, axis = axis, to = to](std::size_t other) {
                   return std::get<0>(way[other]) < axis && std::get<1>(way[other]) == to;
               });
    };
    std::vector<std::size_t> ready;
    std::ranges::remove_copy_if(left, std::back_inserter(ready), waits);
    return *std::ranges::min_element(ready, {}, [&](std::size_t one) { return tile.haste(way[one]); });
}

auto axis_prices(const std::vector<Index>& shape, Index item_bytes, const std::vector<Index>& sizes,
                 const std::vector<Index>& held, bool native, const std::vector<std::vector<AxisChange>>& ways,
                 bool ordered) {
    const AxisTile begun(shape, item_bytes, sizes, held, native);
    std::vector<std::tuple<std::vector<std::size_t>, std::tuple<std::vector<AxisCall>, Index, Index, Index>>> all;
    for (const std::vector<AxisChange>& way : ways) {
        AxisTile tile = begun;
        std::vector<std::size_t> left(way.size()), order;
        for (std::size_t at = 0; at < way.size(); ++at) left[at] = at;
        while (!left.empty()) {
            order.push_back(ordered ? left.front() : next_change(tile, way, left));
            std::erase(left, order.back());
            tile.take(way[order.back()]);
        }
        all.emplace_back(std::move(order), std::move(tile).price());
    }
    return all;
}

}  // namespace

void add_axis_moves(nb::module_& module) {
    module.def(
        "axis_prices", axis_prices, "shape"_a, "item_bytes"_a, "sizes"_a, "held"_a, "native"_a, "ways"_a, "ordered"_a,
        "For each way, a list of (mesh axis, placement after, strided): the order of its changes, and (calls, bytes "
        "copied, bytes of the largest tensor, most bytes at once). A placement is the dimension that it cuts, -1 "
        "for the whole or -2 for a sum. ordered: the changes stay in their order.");
}

}  // namespace reshard::python
