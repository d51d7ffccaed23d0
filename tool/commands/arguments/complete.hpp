// Arguments beyond their syntax: which belong together, and the files that they name.
#pragma once

#include "tool/commands/arguments.hpp"

namespace reshard::cli {

/// Checks that the subcommand has what it needs, and nothing that it would ignore. Errors: usage.
[[nodiscard]] Result<void> check_complete(const Arguments& arguments);

/// Replaces the names of a machine's file and of files of first steps by their text. Errors: usage, files.
[[nodiscard]] Result<void> read_files(Question& question);

}  // namespace reshard::cli
