// A question as text, from the command line or from a line of JSON, and the same question understood.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reshard/synthesize.hpp"

namespace reshard::cli {

/// Everything that `plan` and its relatives are asked, still text.
struct Question {
    std::string mesh;
    std::optional<std::string> target_mesh;  ///< the source's mesh when not given
    std::string source;
    std::string target;
    std::optional<std::string> vocabulary;
    std::optional<std::string> objective;
    std::optional<std::string> machine;  ///< one that is built in, or a machine's text
    std::optional<std::string> peak_bytes_max;
    std::optional<std::string> footprint_bytes_max;
    bool donate = false;
    std::vector<std::string> first_steps;  ///< `kind layout` each, on the source's mesh
};

struct Asked {
    Problem problem;
    Options options;
};

/// Parses every part. Errors: as the parsers of the parts, the message led by the name of the part.
[[nodiscard]] Result<Asked> understand(const Question& question);

}  // namespace reshard::cli
