// One line of `plan --batch`: JSON that is a problem and nothing else.
#pragma once

#include <string_view>

#include "tool/request/json.hpp"

namespace reshard::cli {

struct ProblemLine {
    Json id;  ///< as it was given; null when the line has none, or when it could not be read that far
    Result<Question> question;
};

/// Never fails as a whole: an error is in `question`, beside the id it belongs to. Duplicate keys, unknown keys, wrong
/// types and broken JSON are Code::syntax and name the field or the byte.
[[nodiscard]] ProblemLine parse_problem_line(std::string_view line);

}  // namespace reshard::cli
