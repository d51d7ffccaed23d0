#include "src/base/printable.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace reshard {
namespace {

struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
};

// Code points that a terminal acts on or does not show: controls, marks of direction, ends of lines, characters without
// width, surrogates, private ones, noncharacters.
constexpr std::array<Range, 18> hidden = {{{0x00, 0x1f},
                                           {0x7f, 0x9f},
                                           {0xad, 0xad},
                                           {0x34f, 0x34f},
                                           {0x61c, 0x61c},
                                           {0x115f, 0x1160},
                                           {0x17b4, 0x17b5},
                                           {0x180b, 0x180f},
                                           {0x200b, 0x200f},
                                           {0x2028, 0x202e},
                                           {0x2060, 0x206f},
                                           {0x3164, 0x3164},
                                           {0xd800, 0xf8ff},
                                           {0xfe00, 0xfe0f},
                                           {0xfeff, 0xfeff},
                                           {0xffa0, 0xffa0},
                                           {0xfff0, 0xfffb},
                                           {0xe0000, 0x10ffff}}};

bool is_hidden(std::uint32_t point) {
    if ((point & 0xfffeU) == 0xfffeU) return true;
    return std::ranges::any_of(hidden, [&](const Range& one) { return point >= one.first && point <= one.last; });
}

struct Character {
    std::uint32_t point = 0;
    std::size_t bytes = 0;  // 0: the text does not begin with UTF-8
};

// The first character of a text that is not empty.
Character first_of(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
    std::uint32_t point = lead & (0xffU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        if ((byte(i) & 0xc0U) != 0x80) return {};
        point = point << 6 | (byte(i) & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    return point < least[bytes] || point > 0x10ffff || surrogate ? Character{} : Character{point, bytes};
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    while (!text.empty()) {
        const Character next = first_of(text);
        if (next.bytes == 0) {
            shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        } else if (!is_hidden(next.point)) {
            shown += text.substr(0, next.bytes);
        } else {
            shown += next.point < 0x80 ? fmt::format("\\x{:02x}", next.point) : fmt::format("\\u{:04x}", next.point);
        }
        text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
    }
    return shown;
}

std::string shortened(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return printable(text);
    std::size_t end = bytes_max;
    while (end > 0 && bytes_max - end < 3 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
    return printable(text.substr(0, end)) + "...";
}

std::string in_quotes(std::string_view text) { return "'" + shortened(text) + "'"; }

}  // namespace reshard
