// Names formats that this library does not read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reshard::files {

inline constexpr std::size_t other_format_bytes = 512;  ///< that other_format looks at

/// Names the format of a file by its first bytes, and says what to do: the end of a sentence that begins with the
/// file's name ("is ..."). nullopt if the bytes are of no known format.
[[nodiscard]] std::optional<std::string> other_format(std::string_view start);

/// The same for a folder that holds these names.
[[nodiscard]] std::optional<std::string> other_folder(std::span<const std::string> names);

}  // namespace reshard::files
