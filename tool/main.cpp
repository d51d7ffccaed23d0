// The tool `reshard`. Nothing is decided here: arguments in, a subcommand, its exit code out.
#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "tool/commands/arguments.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"

namespace {

int answered(const reshard::cli::Arguments& arguments) {
    const auto code = arguments.command(arguments);
    return code ? *code : reshard::cli::refuse(arguments.json, code.error());
}

// A stream that the process was not given stays closed: a file that is opened must not take its number.
void keep_standard_streams() {
    for (int number = 0; number < 3; ++number)
        if (::fcntl(number, F_GETFD) < 0 && errno == EBADF) ::open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
}

// An answer that did not reach the disk must not end in success. When its reader has left, the process ends as any
// other would, unless SIGPIPE was ignored when it was started.
int flushed(int code, bool ignored) {
    if (reshard::cli::heard()) return code;
    const int why = reshard::cli::why_not_heard();
    if (why == EPIPE && !ignored) {
        std::signal(SIGPIPE, SIG_DFL);
        std::raise(SIGPIPE);
    }
    std::fprintf(stderr, "reshard: the answer could not be written: %s\n", std::strerror(why));
    return code == reshard::cli::exit_ok ? reshard::cli::exit_wrong : code;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace reshard;
    keep_standard_streams();
    const bool ignored =
        std::signal(SIGPIPE, SIG_IGN) == SIG_IGN;  // a reader that leaves is a failed write; see flushed
    std::signal(SIGXFSZ, SIG_IGN);                 // and so is a file that may not become that large
    try {
        const auto arguments = cli::parse_arguments(argc, argv);
        if (!arguments) return cli::leave(cli::complain(arguments.error()));
        return cli::leave(flushed(*arguments ? answered(**arguments) : cli::exit_ok, ignored));
    } catch (const std::bad_alloc&) {
        return cli::leave(cli::complain({Code::infeasible, "out of memory"}));
    } catch (const std::exception& error) {
        return cli::leave(cli::complain({Code::usage, error.what()}));
    }
}
