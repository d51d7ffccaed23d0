// The ends that rules speak of.
#pragma once

#include <string_view>

namespace reshard {

/// True if the rules have a line that begins with this word and a mesh: `source` or `target`.
[[nodiscard]] bool says_end(std::string_view rules, std::string_view word);

}  // namespace reshard
