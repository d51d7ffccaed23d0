// The options of files, which several subcommands have.
#pragma once

#include "reshard/files/convert.hpp"
#include "tool/commands/arguments.hpp"

namespace reshard::cli {

/// The options of the command line for files. The form is by the end of the output's name if it is not given. Errors:
/// usage, and of the files that are named.
[[nodiscard]] Result<files::ConvertOptions> file_options(const Arguments& arguments);

/// `1 tensor`, `2 tensors`.
[[nodiscard]] std::string plural(Index count, const char* one);

}  // namespace reshard::cli
