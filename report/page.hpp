// The page that text is laid out for: the width of a line, and whether colour is wanted.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reshard::cli {

struct Page {
    std::size_t width = 120;  ///< columns of a line
    bool colour = false;      ///< by a terminal's escape codes
};

[[nodiscard]] std::string bold(std::string_view text, const Page& page);   ///< unchanged on a page without colour
[[nodiscard]] std::string green(std::string_view text, const Page& page);  ///< as bold
[[nodiscard]] std::string red(std::string_view text, const Page& page);    ///< as bold

}  // namespace reshard::cli
