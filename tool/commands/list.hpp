// A list of problems from a file, under the options of the command line.
#pragma once

#include "tool/commands/arguments.hpp"
#include "tool/request/json.hpp"

namespace reshard::cli {

/// `problems` in the order of the file; `options` are of each array, without limits but the peak's, `memory` of all.
struct RequestList {
    std::vector<Json> ids;
    std::vector<Problem> problems;
    std::vector<std::string> notes;  ///< of each, as of a request
    Options options;
    MemoryPolicy memory;
};

/// Errors: io; usage (options in a line); as the parsers, the number of the line in front.
[[nodiscard]] Result<RequestList> read_list(const Arguments& arguments);

/// The file that --list names, or stdin. Errors: io.
[[nodiscard]] Result<std::string> read_list_text(const std::string& path);

/// The name of a problem of a list: its id, or its number.
[[nodiscard]] std::string id_text(const Json& id, std::size_t array);

/// The ranks that the largest device of any problem needs.
[[nodiscard]] Index rank_count(const RequestList& list);

/// The judge's verdict, as a table of buckets and two lines for the whole.
[[nodiscard]] std::string list_text(const RequestList& asked, const ListSynthesis& made);
[[nodiscard]] Json list_json(const RequestList& asked, const ListSynthesis& made);

}  // namespace reshard::cli
