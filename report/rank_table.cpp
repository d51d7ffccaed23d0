#include "report/rank_table.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/table.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {

namespace {

constexpr Index ranks_max = Index{1} << 16;

std::string side_text(const Side& side) {
    std::vector<std::string> intervals;
    for (const auto& [begin, end] : side.intervals) intervals.push_back(fmt::format("{}:{}", begin, end));
    return fmt::format("{}", fmt::join(intervals, "+"));
}

// A part of the target, and the source elements that it is made of.
struct Part {
    const ShardedTensor* tensor = nullptr;  // the source
    TensorPart source;
    Layout layout;  // of the part at the target
};

// Returns the source's indices in a tile of the part, for each dimension of its view. A dimension of extent 1 may be at
// one end only. Empty for an index.
std::vector<std::optional<Side>> source_sides(const Part& part, const Tile& held, const Box& box) {
    std::vector<std::optional<Side>> sides(box.size());
    std::size_t k = 0;
    for (std::size_t i = 0; i < box.size(); ++i) {
        const std::size_t dim = part.source.order.empty() ? i : part.source.order[i];
        const Interval& side = box[dim];
        while (k < held.size() && part.layout.dims[k].extent != side.size() && part.layout.dims[k].extent == 1) ++k;
        if (k == held.size() || part.layout.dims[k].extent != side.size()) continue;
        sides[dim] = held[k++];
        for (Interval& interval : sides[dim]->intervals)
            interval = {interval.begin + side.begin, interval.end + side.begin};
    }
    return sides;
}

// Rows of `period` indices each.
std::string rows_text(Side rows, Index period) {
    for (Interval& interval : rows.intervals) interval = {interval.begin * period, interval.end * period};
    return side_text(rows);
}

// A dimension that the view splits: `0:2 of 8` are the indices 0 and 1 of each 8.
std::string split_text(const Side& rows, Index row_count, const Side& within, Index period) {
    if (within.size() == period) return rows_text(rows, period);
    const std::string text = fmt::format("{} of {}", side_text(within), period);
    return rows.size() == row_count ? text : fmt::format("{} in {}", text, rows_text(rows, period));
}

// Returns the first dimension of the view for each dimension of a tensor: the view has it, or splits it in two. Other
// dimensions of the view have one index and say who owns the tensor. nullopt if the view is another shape.
std::optional<std::vector<std::size_t>> places_in(std::span<const Index> view, std::span<const Index> own) {
    std::vector<std::size_t> places;
    std::size_t k = 0;
    for (const Index extent : own) {
        while (k < view.size() && view[k] == 1 && extent != 1) ++k;
        places.push_back(k);
        if (k < view.size() && view[k] == extent)
            ++k;
        else if (k + 1 < view.size() && view[k] * view[k + 1] == extent)
            k += 2;
        else
            return std::nullopt;
    }
    for (; k < view.size(); ++k)
        if (view[k] != 1) return std::nullopt;
    return places;
}

// The indices of a source for a side of its layout, if ranks share blocks.
Side in_tensor(Side side, const std::vector<ShardedTensor::Stretch>& held) {
    for (Interval& interval : side.intervals)
        for (const auto& [indices, begin] : held) {
            if (interval.begin < begin || interval.end > begin + indices.size()) continue;
            interval = {interval.begin - begin + indices.begin, interval.end - begin + indices.begin};
            break;
        }
    return side;
}

// Returns the indices of the source in a tile of the part, for each dimension of the source or of another shape.
std::string indices_text(const Part& part, const Tile& held) {
    const std::vector<Index> own = held_shape(*part.tensor);
    Box box = part.source.box.value_or(Box{});
    const std::vector<Index> view = part.source.box ? shape(*part.source.layout) : own;
    if (!part.source.box)
        for (const Index extent : own) box.push_back({0, extent});
    std::vector<std::optional<Side>> sides = source_sides(part, held, box);
    if (view.size() == 1 && own.size() > 1) return fmt::format(".flat[{}]", side_text(*sides[0]));
    const auto side = [&](std::size_t dim) { return sides[dim].value_or(Side{{box[dim]}}); };
    const auto text = [&](std::size_t dim) {
        return sides[dim] ? side_text(*sides[dim]) : fmt::format("{}", box[dim].begin);
    };
    std::vector<std::string> dims;
    const auto places = places_in(view, own);
    if (!places) {
        const std::size_t owners = part.tensor->layout->dims.size() - own.size();
        for (std::size_t k = owners; k < view.size(); ++k) dims.push_back(text(k));
        return fmt::format(" shape({})[{}]", fmt::join(std::span(view).subspan(owners), ","), fmt::join(dims, ","));
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
        const std::size_t k = (*places)[i];
        if (sides[k] && !part.tensor->held.empty()) sides[k] = in_tensor(*std::move(sides[k]), part.tensor->held[i]);
        dims.push_back(view[k] == own[i] ? text(k) : split_text(side(k), view[k], side(k + 1), view[k + 1]));
    }
    return dims.empty() ? "" : fmt::format("[{}]", fmt::join(dims, ","));
}

Result<std::vector<Part>> parts_of(const CheckpointMapping& model, std::size_t target) {
    std::vector<Part> parts;
    for (std::size_t move = 0; move < model.moves.size(); ++move) {
        if (model.ends[move].target != target) continue;
        RESHARD_TRY(auto& layout, layout_of(model.moves[move].target));
        parts.push_back({&model.sources[model.ends[move].source], model.moves[move].source, std::move(layout)});
    }
    return parts;
}

std::string array_text(DType dtype, const std::vector<Index>& shape) {
    return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

// The extents of a tile, without the dimensions that only say who owns the tensor.
std::string tile_text(const ShardedTensor& tensor, const Tile& held) {
    std::vector<Index> extents;
    if (tensor.layout->dims.size() < tensor.shape.size())  // flattened
        return array_text(tensor.layout->dtype, reshard::extents(held));
    std::size_t k = 0;
    for (const Index extent : tensor.shape) {
        while (tensor.layout->dims[k].extent != extent) ++k;
        extents.push_back(held[k++].size());
    }
    return array_text(tensor.layout->dtype, extents);
}

}  // namespace

Result<std::string> rank_table(const CheckpointMapping& model, std::string_view name, const Page& page) {
    const auto found = std::ranges::find(model.targets, name, &ShardedTensor::name);
    if (found == model.targets.end())
        return fail(Code::mismatch, fmt::format("the rules make no tensor {}", in_quotes(name)));
    const Layout& layout = *found->layout;
    if (world_size(layout.mesh) > ranks_max)
        return fail(Code::unsupported, fmt::format("more than {} ranks", ranks_max));
    RESHARD_TRY(const auto& parts, parts_of(model, static_cast<std::size_t>(found - model.targets.begin())));
    Table table({">rank", "tile", "~made of"});
    for (Index rank = 0; rank < world_size(layout.mesh); ++rank) {
        if (!position_of(layout.mesh, rank)) continue;
        const Tile whole = tile(layout, rank);
        std::vector<std::string> pieces;
        for (const Part& part : parts) {
            const Tile held = tile(part.layout, rank);
            if (count(held) == 0) continue;
            const DType dtype = part.tensor->layout->dtype;
            const std::string cast = dtype == layout.dtype ? "" : fmt::format(" as {}", reshard::name(layout.dtype));
            pieces.push_back(part.tensor->name + indices_text(part, held) + cast);
        }
        table.row({fmt::format("{}", rank), count(whole) > 0 ? tile_text(*found, whole) : "-",
                   fmt::format("{}", fmt::join(pieces, " "))});
    }
    return fmt::format("{} {}\n{}", printable(name), array_text(layout.dtype, found->shape), table.text(page));
}

}  // namespace reshard::cli
