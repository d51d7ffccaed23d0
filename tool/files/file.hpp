// Texts that the command line names, and the library's files by their name here.
#pragma once

#include "files/base/file.hpp"

namespace reshard::cli {

using files::cannot;
using files::File;

/// A text that the command line names: a regular file, or a pipe that somebody writes, of at most so many bytes.
/// Errors: io.
[[nodiscard]] Result<std::string> read_text(const std::string& path, Index bytes_max = index_max);

/// True when the path names something that read_text reads or refuses, a folder excepted.
[[nodiscard]] bool is_text_file(const std::string& path);

}  // namespace reshard::cli
