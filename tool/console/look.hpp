// How text is to look: plain in files and programs, painted on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace reshard::cli {

struct Look {
    std::size_t width = 120;  ///< columns of a line
    bool colour = false;      ///< with the escapes of a terminal
};

[[nodiscard]] std::string bold(std::string_view text, const Look& look);
[[nodiscard]] std::string green(std::string_view text, const Look& look);
[[nodiscard]] std::string red(std::string_view text, const Look& look);

}  // namespace reshard::cli
