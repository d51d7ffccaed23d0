// What a file or folder is that none of the formats here can read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace reshard::files {

inline constexpr std::size_t other_format_bytes = 512;  ///< that other_format looks at

/// What a file is whose first bytes are `start`, and what to do about it, as the end of a sentence that begins with the
/// file's name: "is ...". none: nothing is known of such bytes.
[[nodiscard]] std::optional<std::string> other_format(std::string_view start);

/// The same of a folder with these names in it.
[[nodiscard]] std::optional<std::string> other_folder(std::span<const std::string> names);

}  // namespace reshard::files
