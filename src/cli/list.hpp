// A list of problems from a file, under the options of the command line.
#pragma once

#include "arguments.hpp"
#include "json.hpp"

namespace reshard::cli {

/// `problems` in the order of the file; `options` are of each array, without limits but the peak's, `limits` of all.
struct AskedList {
    std::vector<Json> ids;
    std::vector<Problem> problems;
    Options options;
    ListLimits limits;
};

/// Errors: io; usage (options in a line); as the parsers, the number of the line in front.
[[nodiscard]] Result<AskedList> read_list(const Arguments& arguments);

/// What the judge stated, as a table of buckets and two lines for the whole.
[[nodiscard]] std::string list_text(const AskedList& asked, const ListSynthesis& made);
[[nodiscard]] Json list_json(const AskedList& asked, const ListSynthesis& made);

}  // namespace reshard::cli
