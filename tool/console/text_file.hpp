// Texts that the command line names.
#pragma once

#include <string>

#include "reshard/planner/integer.hpp"
#include "reshard/result.hpp"

namespace reshard::cli {

/// Reads a regular file, or a pipe that another process writes, of at most `bytes_max` bytes. Errors: io.
[[nodiscard]] Result<std::string> read_text(const std::string& path, Index bytes_max = index_max);

/// True if something that is no folder has this path.
[[nodiscard]] bool is_text_file(const std::string& path);

}  // namespace reshard::cli
