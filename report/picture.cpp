#include "report/picture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reshard::cli {

Grid::Grid(const Mesh& mesh) : mesh_(mesh) {
    if (mesh.axes.empty()) return;
    columns_ = mesh.axes.back().size;
    rows_ = device_count(mesh) / columns_;
}

std::string Grid::row_label(Index row) const {
    std::vector<std::string> parts;
    for (std::size_t a = mesh_.axes.size(); a-- > 1;) {
        const Axis& axis = mesh_.axes[a - 1];
        parts.insert(parts.begin(), fmt::format("{}{}", axis.name, row % axis.size));
        row /= axis.size;
    }
    return fmt::format("{}", fmt::join(parts, ","));
}

std::string Grid::column_label(Index column) const {
    return mesh_.axes.empty() ? "" : fmt::format("{}{}", mesh_.axes.back().name, column);
}

namespace {

constexpr std::size_t intervals_shown_max = 3;

std::string range(const Side& side) {
    std::string text;
    for (std::size_t i = 0; i < side.intervals.size(); ++i) {
        if (i == intervals_shown_max) return text + "+...";
        text += fmt::format("{}{}:{}", i > 0 ? "+" : "", side.intervals[i].begin, side.intervals[i].end);
    }
    return text;
}

}  // namespace

std::string ranges(const Layout& layout, const Tile& tile) {
    if (count(tile) == 0) return "-";
    std::vector<std::string> parts;
    for (std::size_t d = 0; d < tile.size(); ++d)
        parts.push_back(tile[d].size() == layout.dims[d].extent ? ":" : range(tile[d]));
    return parts.empty() ? "0" : fmt::format("{}", fmt::join(parts, ","));
}

std::vector<Stage> stages(const Plan& plan) {
    std::vector<Stage> all = {{"source", &plan.source}};
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        all.push_back({fmt::format("{} {}", i + 1, name(plan.steps[i].kind)), &plan.steps[i].layout});
    }
    return all;
}

}  // namespace reshard::cli
