// JSON as headers have it: an object, no key twice, whole.
#pragma once

#include <nlohmann/json.hpp>

#include "reshard/result.hpp"

namespace reshard::files {

using Json = nlohmann::ordered_json;

/// The object that the text is. `what` names it in errors. Errors: io.
[[nodiscard]] Result<Json> parse_object(std::string_view text, std::string_view what);

/// A whole number from 0 to 2^63 - 1; none for anything else.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Json& json);
[[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(const Json& json);

/// In quotes, bytes that are not printable written out, and not longer than a line.
[[nodiscard]] std::string in_quotes(std::string_view name);

/// A name that is one step within a folder: no /, not . or .., no bytes below a blank, not empty, at most 255 bytes.
[[nodiscard]] bool is_plain_name(std::string_view name);

}  // namespace reshard::files
