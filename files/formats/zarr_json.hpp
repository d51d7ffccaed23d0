// Members of the JSON of zarr, and errors about them.
#pragma once

#include <fmt/format.h>

#include "files/formats/json_text.hpp"

namespace reshard::files {

/// Return the error of a text that breaks the format, and of a feature that is not read.
[[nodiscard]] inline tl::unexpected<Error> zarr_wrong(std::string_view what) {
    return fail(Code::io, fmt::format("zarr: {}", what));
}
[[nodiscard]] inline tl::unexpected<Error> zarr_unknown(std::string_view what) {
    return fail(Code::unsupported, fmt::format("zarr: {}", what));
}

/// Returns a member, or null if it is missing.
[[nodiscard]] inline const Json& member(const Json& json, const char* key) {
    static const Json none;
    return json.is_object() && json.contains(key) ? json[key] : none;
}

/// Returns the name of an extension: the text itself, or its member `name`.
[[nodiscard]] inline std::string name_of(const Json& json) {
    const Json& name = json.is_string() ? json : member(json, "name");
    return name.is_string() ? name.get<std::string>() : "";
}

/// Returns the whole number of a member, or `otherwise`.
[[nodiscard]] inline int number_of(const Json& json, const char* key, int otherwise) {
    const Json& value = member(json, key);
    if (!value.is_number_integer()) return otherwise;
    const auto number = value.get<std::int64_t>();
    return number < -(1 << 20) || number > (1 << 20) ? -(1 << 20) : static_cast<int>(number);
}

/// Returns the text of JSON that a program of any age reads.
[[nodiscard]] inline std::string zarr_text(const Json& json) {
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace reshard::files
