#include "report/rank_table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/table.hpp"
#include "src/base/printable.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {

namespace {

constexpr Index ranks_max = Index{1} << 16;

std::string side_text(const Side& side, Index offset) {
    std::vector<std::string> intervals;
    for (const auto& [begin, end] : side.intervals)
        intervals.push_back(fmt::format("{}:{}", begin + offset, end + offset));
    return fmt::format("{}", fmt::join(intervals, "+"));
}

// Returns the indices of the source in a tile of the part. A dimension of extent 1 may be at one end only.
std::string indices_text(const Layout& part, const Tile& held, const Box& source) {
    std::vector<std::string> dims;
    std::size_t k = 0;
    for (const Interval& side : source) {
        while (k < held.size() && part.dims[k].extent != side.size() && part.dims[k].extent == 1) ++k;
        const bool same = k < held.size() && part.dims[k].extent == side.size();
        dims.push_back(same ? side_text(held[k++], side.begin) : fmt::format("{}", side.begin));
    }
    return dims.empty() ? "" : fmt::format("[{}]", fmt::join(dims, ","));
}

// A part of the target, and the source elements that it is made of.
struct Part {
    std::string source;
    Box box;
    Layout layout;
};

Result<std::vector<Part>> parts_of(const CheckpointMapping& model, std::size_t target) {
    std::vector<Part> parts;
    for (std::size_t move = 0; move < model.moves.size(); ++move) {
        if (model.ends[move].target != target) continue;
        const ShardedTensor& source = model.sources[model.ends[move].source];
        Box box;
        for (const Index extent : source.shape) box.push_back({0, extent});
        RESHARD_TRY(auto& layout, layout_of(model.moves[move].target));
        parts.push_back({source.name, model.moves[move].source.box.value_or(box), std::move(layout)});
    }
    return parts;
}

std::string array_text(DType dtype, const std::vector<Index>& shape) {
    return fmt::format("{}[{}]", name(dtype), fmt::join(shape, ","));
}

// The extents of a tile, without the dimensions that only say who owns the tensor.
std::string tile_text(const ShardedTensor& tensor, const Tile& held) {
    std::vector<Index> extents;
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
    Table table({{"rank", Table::Align::right}, {"tile"}, {"made of", Table::Align::left, true}});
    for (Index rank = 0; rank < world_size(layout.mesh); ++rank) {
        if (!position_of(layout.mesh, rank)) continue;
        const Tile whole = tile(layout, rank);
        std::vector<std::string> pieces;
        for (const Part& part : parts) {
            const Tile held = tile(part.layout, rank);
            if (count(held) > 0) pieces.push_back(part.source + indices_text(part.layout, held, part.box));
        }
        table.row({fmt::format("{}", rank), count(whole) > 0 ? tile_text(*found, whole) : "-",
                   fmt::format("{}", fmt::join(pieces, " "))});
    }
    return fmt::format("{} {}\n{}", printable(name), array_text(layout.dtype, found->shape), table.text(page));
}

}  // namespace reshard::cli
