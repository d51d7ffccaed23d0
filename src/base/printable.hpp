// Makes text from a file or a user safe for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace reshard {

/// The text without anything that a terminal would act on instead of showing it. Control characters and bytes that are
/// not UTF-8 become \x1b; characters that are invisible, end a line or turn the direction of writing become \u202e.
/// Everything else stays, so printable(printable(text)) is printable(text).
[[nodiscard]] std::string printable(std::string_view text);

/// Bytes of a text that a message shows.
inline constexpr std::size_t shown_bytes_max = 200;

/// The same for the first `bytes_max` bytes, with "..." in place of the rest. May cut a few bytes earlier, so that no
/// character is split.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t bytes_max = shown_bytes_max);

/// `shortened`, in quotes.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace reshard
