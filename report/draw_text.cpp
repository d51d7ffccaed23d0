// The picture as text: small arrays as element numbers, others as index ranges; meshes too large to print keep their
// first devices and their last.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/picture.hpp"
#include "report/table.hpp"
#include "reshard/text.hpp"

namespace reshard::cli {
namespace {

using Lines = std::vector<std::string>;

constexpr Index elements_numbered_max = 100;
constexpr Index lines_max = 8;
constexpr std::size_t cell_width_max = 40;
constexpr Index rows_max = 12;     // of devices
constexpr Index columns_max = 24;  // fewer when the line is too short for them

// Elements of a small tile by their numbers in the whole array, a line for each run along the last dimension.
Lines numbered(const Layout& layout, const Tile& held) {
    Index whole = 1;
    for (const Dim& dim : layout.dims) whole *= dim.extent;
    const std::size_t digits = std::to_string(std::max<Index>(whole - 1, 0)).size();
    const Index across = held.empty() ? 1 : held.back().size();
    const Index all = count(held);
    Lines lines;
    for (Index first = 0; first < all; first += across) {
        std::vector<std::string> numbers;
        for (Index i = first; i < first + across; ++i) {
            Index rest = i;
            Index number = 0;
            Index stride = 1;
            for (std::size_t d = held.size(); d-- > 0;) {
                number += held[d].at(rest % held[d].size()) * stride;
                rest /= held[d].size();
                stride *= layout.dims[d].extent;
            }
            numbers.push_back(padded(std::to_string(number), digits, Table::Align::right));
        }
        lines.push_back(fmt::format("{}", fmt::join(numbers, digits == 1 ? "" : " ")));
    }
    return lines.empty() ? Lines{"-"} : lines;
}

bool small_enough(const Layout& layout) {
    const Index elements = global_bytes(layout) / size_of(layout.dtype);
    if (elements > elements_numbered_max) return false;
    const Index across = layout.dims.empty() ? 1 : std::max<Index>(1, tile_extent(layout.dims.back()));
    const std::size_t digits = elements > 10 ? 3 : 1;
    return tile_elements(layout) / across <= lines_max && static_cast<std::size_t>(across) * digits <= cell_width_max;
}

Lines cell(const Layout& layout, Index device, bool numbers) {
    const Tile held = tile(layout, device);
    Lines lines = numbers ? numbered(layout, held) : Lines{ranges(layout, held)};
    if (summand_count(layout) > 1) lines.front() += fmt::format(" s{}", summand(layout, device));
    if (!layout.mesh.devices.in_order()) lines.front() = fmt::format("d{}: {}", device, lines.front());
    return lines;
}

// The indices to show of `count`: all, or the first and the last with -1 between.
std::vector<Index> shown(Index count, Index most) {
    std::vector<Index> indices;
    for (Index i = 0; i < count && i < (count > most ? most - 2 : count); ++i) indices.push_back(i);
    if (count > most) indices.insert(indices.end(), {-1, count - 1});
    return indices;
}

std::size_t widest(const Lines& lines) {
    std::size_t width = 0;
    for (const std::string& line : lines) width = std::max(width, display_width(line));
    return width;
}

// One column of the panel: its title, then the cells of each row, every cell as tall as its row.
using Column = std::vector<Lines>;

std::vector<Column> columns_of(const Layout& layout, const Grid& grid, Index most) {
    const bool numbers = small_enough(layout);
    const std::vector<Index> rows = shown(grid.rows(), rows_max);
    std::vector<Column> columns(1);
    columns[0].push_back({""});
    for (const Index row : rows) columns[0].push_back({row < 0 ? "..." : grid.row_label(row)});
    for (const Index column : shown(grid.columns(), most)) {
        Column cells = {{column < 0 ? "..." : grid.column_label(column)}};
        for (const Index row : rows) {
            const bool there = row >= 0 && column >= 0;
            cells.push_back(there ? cell(layout, grid.device(row, column), numbers) : Lines{row < 0 ? "" : "..."});
        }
        columns.push_back(std::move(cells));
    }
    return columns;
}

Lines panel_of(const Stage& stage, Index most) {
    const Layout& layout = *stage.layout;
    const std::vector<Column> columns = columns_of(layout, Grid(layout.mesh), most);
    Lines lines = {stage.title, format(layout)};
    for (std::size_t row = 0; row < columns[0].size(); ++row) {
        std::size_t height = 1;
        for (const Column& column : columns) height = std::max(height, column[row].size());
        for (std::size_t part = 0; part < height; ++part) {
            std::string line;
            for (const Column& column : columns) {
                std::size_t width = 0;
                for (const Lines& cells : column) width = std::max(width, widest(cells));
                if (width > 0) line += padded(part < column[row].size() ? column[row][part] : "", width) + "  ";
            }
            lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
        }
    }
    return lines;
}

// As many columns of devices as the line holds.
Lines panel(const Stage& stage, std::size_t width) {
    Index most = columns_max;
    Lines lines = panel_of(stage, most);
    while (most > 3 && widest(lines) + 4 > width) lines = panel_of(stage, --most);
    return lines;
}

// Panels beside each other, as many as fit the line.
std::string beside(const std::vector<Lines>& panels, std::size_t begin, std::size_t end, const Page& page) {
    std::size_t height = 0;
    for (std::size_t p = begin; p < end; ++p) height = std::max(height, panels[p].size());
    std::string text;
    for (std::size_t row = 0; row < height; ++row) {
        std::string line;
        for (std::size_t p = begin; p < end; ++p) {
            const std::string part = row < panels[p].size() ? panels[p][row] : "";
            line += fmt::format("  {}", padded(part, widest(panels[p]) + 2));
        }
        line = line.substr(0, line.find_last_not_of(' ') + 1);
        text += (row == 0 ? bold(line, page) : line) + "\n";
    }
    return text;
}

}  // namespace

std::string text_picture(const Plan& plan, const Page& page) {
    std::vector<Lines> panels;
    for (const Stage& stage : stages(plan)) panels.push_back(panel(stage, page.width));
    std::string text;
    for (std::size_t begin = 0; begin < panels.size();) {
        std::size_t end = begin;
        std::size_t used = 0;
        while (end < panels.size() && (end == begin || used + widest(panels[end]) + 4 <= page.width)) {
            used += widest(panels[end++]) + 4;
        }
        if (begin > 0) text += "\n";
        text += beside(panels, begin, end, page);
        begin = end;
    }
    return text;
}

}  // namespace reshard::cli
