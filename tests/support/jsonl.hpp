// Just enough JSON to read the tables of cases: one object a line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reshard::test {

struct Json {
    enum class Kind { null, boolean, number, text, list, object } kind = Kind::null;
    double number = 0;  ///< also of a boolean
    std::string text;
    std::vector<Json> list;
    std::map<std::string, Json> members;

    /// The member, or null.
    [[nodiscard]] const Json& operator[](const std::string& key) const;
    [[nodiscard]] bool has(const std::string& key) const { return (*this)[key].kind != Kind::null; }
};

/// Throws std::runtime_error with the place on anything that is not JSON.
[[nodiscard]] Json parse_json(const std::string& text);

/// All lines of a file; throws when it cannot be read or has no line.
[[nodiscard]] std::vector<Json> read_jsonl(const std::string& path);

}  // namespace reshard::test
