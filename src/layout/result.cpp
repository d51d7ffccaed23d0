#include "reshard/result.hpp"

#include <algorithm>

#include "src/base/printable.hpp"

namespace reshard {

std::string describe(const Error& error) {
    if (error.text.empty()) return printable(error.message);
    // A long text is shown only around the place.
    constexpr std::size_t context = 60;
    const std::size_t offset = std::min(error.offset, error.text.size());
    const std::size_t begin = offset > context ? offset - context : 0;
    const std::size_t end = std::min(error.text.size(), offset + context);
    const std::string_view text = error.text;
    const std::string lead = (begin > 0 ? "..." : "") + printable(text.substr(begin, offset - begin));
    const std::string rest = printable(text.substr(offset, end - offset)) + (end < text.size() ? "..." : "");
    const auto columns =
        std::ranges::count_if(lead, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; });
    return printable(error.message) + "\n  " + lead + rest + "\n  " +
           std::string(static_cast<std::size_t>(columns), ' ') + "^";
}

}  // namespace reshard
