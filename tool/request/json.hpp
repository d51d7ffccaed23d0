// Answers as JSON. Integers are exact; names may be added, never changed.
#pragma once

#include <nlohmann/json.hpp>

#include "tool/request/request.hpp"

namespace reshard::cli {

using Json = nlohmann::ordered_json;

/// The answer to one question, the same as a line of JSON and as `plan --json`; these say how long it took.
[[nodiscard]] Json plan_json(const Json& id, const Request& asked, const Synthesis& made,
                             std::optional<Index> synthesis_us = {});

/// Adds "through_nodes" if a move through nodes takes less time than the plan, which was made under these options.
void add_nodes(Json& json, const Synthesis& made, const Options& options);

/// [[begin, end], ...]
[[nodiscard]] Json intervals_json(const Side& side);

/// {"id", "error": {"code", "message"}} and, for text, the text and the byte offset of the first wrong place.
[[nodiscard]] Json error_json(const Json& id, const Error& error);

/// Writes the error as the answer where JSON is asked for, and complains; the exit code.
int refuse(bool as_json, const Error& error);

/// A line; bytes that are not UTF-8 are replaced, because the line must be JSON whatever the question was.
[[nodiscard]] std::string line(const Json& json);

}  // namespace reshard::cli
