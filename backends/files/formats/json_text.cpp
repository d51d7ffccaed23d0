#include "backends/files/formats/json_text.hpp"

#include <optional>
#include <set>

#include <fmt/format.h>

namespace reshard::files {

Result<Json> parse_object(std::string_view text, std::string_view what) {
    std::vector<std::set<std::string>> keys;  // of the objects that are open
    std::optional<std::string> twice;
    const auto look = [&](int depth, Json::parse_event_t event, Json& parsed) {
        const auto level = static_cast<std::size_t>(depth);
        if (keys.size() <= level + 1) keys.resize(level + 2);
        if (event == Json::parse_event_t::object_start) keys[level + 1].clear();
        if (event == Json::parse_event_t::key) {
            const auto key = parsed.get<std::string>();
            if (!keys[level].insert(key).second && !twice) twice = key;
        }
        return true;
    };
    Json json = Json::parse(text, look, false);
    if (json.is_discarded() || !json.is_object()) return fail(Code::io, fmt::format("{} is no JSON object", what));
    if (twice) return fail(Code::io, fmt::format("{} has {} twice", what, in_quotes(*twice)));
    return json;
}

std::optional<std::int64_t> whole_number(const Json& json) {
    if (!json.is_number_unsigned()) return std::nullopt;
    const auto value = json.get<std::uint64_t>();
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    return static_cast<std::int64_t>(value);
}

std::optional<std::vector<std::int64_t>> whole_numbers(const Json& json) {
    if (!json.is_array()) return std::nullopt;
    std::vector<std::int64_t> numbers;
    for (const Json& one : json) {
        const auto number = whole_number(one);
        if (!number) return std::nullopt;
        numbers.push_back(*number);
    }
    return numbers;
}

std::string in_quotes(std::string_view name) {
    std::string shown = "'";
    for (const char byte : name.substr(0, 200)) {
        const auto value = static_cast<unsigned char>(byte);
        if (value < 0x20 || value == 0x7f) {
            shown += fmt::format("\\x{:02x}", value);
        } else {
            shown += byte;
        }
    }
    return shown + (name.size() > 200 ? "...'" : "'");
}

bool is_plain_name(std::string_view name) {
    if (name.empty() || name == "." || name == ".." || name.size() > 255) return false;
    for (const char byte : name)
        if (byte == '/' || static_cast<unsigned char>(byte) < 0x20 || byte == 0x7f) return false;
    return true;
}

}  // namespace reshard::files
