#include "tool/console/look.hpp"

#include <fmt/format.h>

namespace reshard::cli {
namespace {

std::string painted(std::string_view text, int code, const Look& look) {
    return look.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

std::string bold(std::string_view text, const Look& look) { return painted(text, 1, look); }
std::string green(std::string_view text, const Look& look) { return painted(text, 32, look); }
std::string red(std::string_view text, const Look& look) { return painted(text, 31, look); }

}  // namespace reshard::cli
