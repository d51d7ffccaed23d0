// Tables of text: columns as wide as their widest cell, and columns that wrap when the line would be too long.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "report/page.hpp"

namespace reshard::cli {

class Table {
public:
    enum class Align { left, right };
    struct Column {
        std::string title;
        Align align = Align::left;
        bool wraps = false;  ///< may be broken at spaces to keep the table within the line
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// Columns by their titles. A title that begins with '>' is aligned right, and the cells of one with '~' wrap.
    Table(std::initializer_list<const char*> titles);

    /// Cells are shown as printable() writes them; one that does not wrap is cut to 200 bytes. pre: one cell per
    /// column.
    void row(std::vector<std::string> cells);

    /// The table, titles first, every line ended, no spaces at the ends of lines. The page's width is kept when
    /// wrapping columns can be made narrow enough.
    [[nodiscard]] std::string text(const Page& page) const;

private:
    [[nodiscard]] std::vector<std::size_t> widths(std::size_t width) const;
    [[nodiscard]] std::string line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) const;

    std::vector<Column> columns_;
    std::vector<std::vector<std::string>> rows_;
};

/// Columns that UTF-8 text takes, one per character.
[[nodiscard]] std::size_t display_width(std::string_view text);

/// `text` broken at spaces into lines of at most `width` columns; longer words stay whole.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// `text` with spaces up to `width` columns.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width, Table::Align align = Table::Align::left);

}  // namespace reshard::cli
