// Just enough JSON to read the tables of cases: one object per line.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reshard::test {

struct Json {
    enum class Kind { null, boolean, number, text, list, object } kind = Kind::null;
    double number = 0;  ///< 0 or 1 for a boolean
    std::string text;
    std::vector<Json> list;
    std::map<std::string, Json> members;

    /// The member, or null.
    [[nodiscard]] const Json& operator[](const std::string& key) const;
    [[nodiscard]] bool has(const std::string& key) const { return (*this)[key].kind != Kind::null; }
};

/// Parses JSON. Throws std::runtime_error with the place if the text is not JSON.
[[nodiscard]] Json parse_json(const std::string& text);

/// All lines of a file. Throws if the file cannot be read or has no line.
[[nodiscard]] std::vector<Json> read_jsonl(const std::string& path);

}  // namespace reshard::test
