// The tool `reshard`. Nothing is decided here: arguments in, a subcommand, its exit code out.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "commands.hpp"
#include "exit.hpp"

namespace {

int dispatch(const reshard::cli::Arguments& arguments) {
    using reshard::cli::Command;
    switch (arguments.command) {
        case Command::plan:
            return reshard::cli::plan(arguments);
        case Command::explain:
            return reshard::cli::explain(arguments);
        case Command::draw:
            return reshard::cli::draw(arguments);
        case Command::run:
            return reshard::cli::run(arguments);
        case Command::bench:
            return reshard::cli::bench(arguments);
        case Command::calibrate:
            return reshard::cli::calibrate(arguments);
        case Command::translate:
            return reshard::cli::translate(arguments);
    }
    return reshard::cli::exit_usage;
}

// An answer that did not reach the disk must not end in success.
int flushed(int code) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    std::fprintf(stderr, "reshard: the answer could not be written: %s\n", std::strerror(errno));
    return code == reshard::cli::exit_ok ? reshard::cli::exit_wrong : code;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace reshard;
    std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves early is an error to report, not a silent death
    std::signal(SIGXFSZ, SIG_IGN);  // and so is a file that may not become that large
    try {
        const auto arguments = cli::parse_arguments(argc, argv);
        if (!arguments) return cli::leave(cli::complain(arguments.error()));
        return cli::leave(flushed(*arguments ? dispatch(**arguments) : cli::exit_ok));
    } catch (const std::bad_alloc&) {
        return cli::leave(cli::complain({Code::infeasible, "out of memory"}));
    } catch (const std::exception& error) {
        return cli::leave(cli::complain({Code::usage, error.what()}));
    }
}
