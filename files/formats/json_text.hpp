// JSON from outside: a complete object, no key twice, bounded in depth and in memory while it is read.
#pragma once

#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include "reshard/result.hpp"
#include "src/base/printable.hpp"

namespace reshard::files {

using Json = nlohmann::ordered_json;

inline constexpr std::size_t json_depth_max = 64;                      ///< lists and objects within each other
inline constexpr std::size_t json_bytes_max = std::size_t{256} << 20;  ///< that values and names take in memory

/// A member of an object: its name, its value, and the name of the member that holds the object.
struct JsonMember {
    std::string_view within;  ///< empty for a member of the text's own object
    const std::string& name;
    Json& value;
};
using VisitMember = std::function<Result<void>(const JsonMember&)>;

/// Calls visit for each member of the object that the text is, in their order. Holds the value of one member at a time,
/// so that a long text takes no more memory than its longest member and its names. If the value of the member `within`
/// is an object, visits the members of that object instead, each by itself, and then `within` as an empty object.
/// `what` names the text in errors. Errors: io (no JSON, a key twice, a text or NUL behind the value, a byte order
/// mark, over json_depth_max or json_bytes_max); as visit.
[[nodiscard]] Result<void> read_members(std::string_view text, std::string_view what, std::string_view within,
                                        const VisitMember& visit);

/// Reads a text that is one object. Errors: as read_members.
[[nodiscard]] Result<Json> parse_object(std::string_view text, std::string_view what);

/// A byte that JSON does not allow, but that the JSON reader would take for a blank or for the end. nullopt if the text
/// has no such byte.
struct HiddenByte {
    std::size_t place = 0;  ///< from 1
    const char* what = "";
};
[[nodiscard]] std::optional<HiddenByte> hidden_byte(std::string_view text);

/// Returns the sentence of a parse error, without the name of its type.
[[nodiscard]] std::string sentence_of(const nlohmann::detail::exception& thrown);

/// Adds a member at the end, in constant time. pre: the object has no member of that name.
void append(Json& object, std::string name, Json value);

/// Returns a whole number from 0 to 2^63 - 1, and nullopt for anything else.
[[nodiscard]] std::optional<std::int64_t> whole_number(const Json& json);
[[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(const Json& json);

/// True for a name of something in a folder: not empty, at most 255 bytes, not . or .., no /, no bytes below a blank.
[[nodiscard]] bool is_plain_name(std::string_view name);

}  // namespace reshard::files
