// Votes as bytes, for the gathers of a group. All ranks of a group run on machines of one byte order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "live/protocol/message.hpp"

namespace reshard::live {

[[nodiscard]] std::string bytes_of(const Vote& vote);
[[nodiscard]] std::optional<Vote> vote_of(std::string_view bytes);  ///< nullopt: these bytes are no vote

}  // namespace reshard::live
