// Commands that run until a person ends them.
#pragma once

namespace reshard::cli {

/// While it lives, Ctrl-C and SIGTERM do not kill the process, and raised() tells of them. There is one at a time.
class Ending {
public:
    Ending();
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending();
    [[nodiscard]] static bool raised();
};

}  // namespace reshard::cli
