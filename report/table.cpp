#include "report/table.hpp"

#include <algorithm>

#include "src/base/printable.hpp"

namespace reshard::cli {
namespace {

constexpr std::size_t gap = 2;
constexpr std::size_t narrowest = 14;  // of a column that wraps
constexpr std::size_t cell_max = 200;  // bytes of a cell that does not wrap: all rows are as wide as the widest

std::string trimmed(std::string line) {
    const std::size_t last = line.find_last_not_of(' ');
    line.erase(last == std::string::npos ? 0 : last + 1);
    return line;
}

}  // namespace

std::size_t display_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(std::string_view text, std::size_t width, Table::Align align) {
    const std::size_t used = display_width(text);
    const std::string space(width > used ? width - used : 0, ' ');
    return align == Table::Align::left ? std::string(text) + space : space + std::string(text);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    std::vector<std::string> lines(1);
    while (!text.empty()) {
        const std::size_t space = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, space);
        text.remove_prefix(std::min(space + 1, text.size()));
        if (lines.back().empty()) {
            lines.back() = word;
        } else if (display_width(lines.back()) + 1 + display_width(word) <= width) {
            lines.back().append(" ").append(word);
        } else {
            lines.emplace_back(word);
        }
    }
    return lines;
}

Table::Table(std::initializer_list<const char*> titles) {
    for (const std::string_view title : titles) {
        const bool right = title.starts_with('>');
        const bool wraps = title.starts_with('~');
        columns_.push_back(
            {std::string(title.substr(right || wraps ? 1 : 0)), right ? Align::right : Align::left, wraps});
    }
}

void Table::row(std::vector<std::string> cells) {
    for (std::size_t c = 0; c < cells.size(); ++c)
        cells[c] = columns_[c].wraps ? printable(cells[c]) : shortened(cells[c], cell_max);
    rows_.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths(std::size_t width) const {
    std::vector<std::size_t> widths;
    std::size_t all = 1;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t widest = display_width(columns_[c].title);
        for (const auto& row : rows_) widest = std::max(widest, display_width(row[c]));
        widths.push_back(widest);
        all += widest + (c > 0 ? gap : 0);
    }
    // The widest wrapping column gives way first, so that two of them end up about equally wide.
    while (all > width) {
        std::size_t* widest = nullptr;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].wraps && widths[c] > narrowest && (widest == nullptr || widths[c] > *widest)) {
                widest = &widths[c];
            }
        }
        if (widest == nullptr) break;
        --*widest;
        --all;
    }
    return widths;
}

std::string Table::line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const {
    std::vector<std::vector<std::string>> broken;
    std::size_t height = 1;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        broken.push_back(columns_[c].wraps ? wrapped(cells[c], widths[c]) : std::vector<std::string>{cells[c]});
        height = std::max(height, broken.back().size());
    }
    std::string out;
    for (std::size_t part = 0; part < height; ++part) {
        std::string line = " ";
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (c > 0) line.append(gap, ' ');
            line += padded(part < broken[c].size() ? broken[c][part] : "", widths[c], columns_[c].align);
        }
        out += trimmed(line) + "\n";
    }
    return out;
}

std::string Table::text(const Page& page) const {
    const std::vector<std::size_t> fitted = widths(page.width);
    std::vector<std::string> titles;
    for (const Column& column : columns_) titles.push_back(column.title);
    std::string titles_line = line(titles, fitted);
    titles_line.pop_back();
    std::string out = bold(titles_line, page) + "\n";
    for (const auto& row : rows_) out += line(row, fitted);
    return out;
}

}  // namespace reshard::cli
