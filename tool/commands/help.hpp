// What `reshard SUBCOMMAND --help` says beside the options: what their values are, examples, exit codes.
#pragma once

namespace CLI {
class App;
}

namespace reshard::cli {

/// Completes the help of the program and of every subcommand that it has by now.
void complete_help(CLI::App& app);

}  // namespace reshard::cli
