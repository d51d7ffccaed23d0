#include "report/page.hpp"

#include <fmt/format.h>

namespace reshard::cli {
namespace {

std::string painted(std::string_view text, int code, const Page& page) {
    return page.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

std::string bold(std::string_view text, const Page& page) { return painted(text, 1, page); }
std::string green(std::string_view text, const Page& page) { return painted(text, 32, page); }
std::string red(std::string_view text, const Page& page) { return painted(text, 31, page); }

}  // namespace reshard::cli
