// `reshard live` and its own subcommands.
#include "reshard/files/convert.hpp"
#include "tool/commands/arguments/options.hpp"

namespace reshard::cli {
namespace {

void add_endpoint(CLI::App& command, Arguments& arguments, const char* about) {
    option(command, "endpoint", arguments.endpoint, "ENDPOINT", about)->required()->check([](const std::string& text) {
        return std::string(text.empty() ? "it is empty; wanted a path with a /, or host:port" : "");
    });
}

void add_patience(CLI::App& command, Arguments& arguments, const char* about) {
    constexpr Index most = 1'000'000'000;
    option(command, "--timeout", arguments.patience, "SECONDS", about)->check(CLI::Range(Index{0}, most));
}

void add_files(CLI::App& command, Arguments& arguments) {
    option(command, "--cast", arguments.casts, "CAST",
           "an element type for all floating tensors, bf16, or for some, *.norm.*=f32; may be given again")
        ->allow_extra_args(false);
    option(command, "--memory", arguments.memory, "BYTES",
           "the most memory of buffers beside the tensors; 1GiB when not given");
}

void add_publish(CLI::App& live, Arguments& arguments) {
    CLI::App* command = add_command(live, arguments, live_publish, "publish",
                                    "offer a checkpoint as a version, until Ctrl-C ends the command");
    option(*command, "from", arguments.from, "PATH", files::paths_in_words())->required();
    add_endpoint(*command, arguments, "a path with a /, ./weights, for one machine; or host:port");
    option(*command, "--version", arguments.version, "NUMBER", "of the checkpoint; 1 when not given")
        ->check(CLI::Range(Index{1}, index_max));
    CLI::Option* watch = command->add_flag(
        "--watch", arguments.watch, "offer each checkpoint that takes the place of this one as the next version");
    CLI::Option* readers = option(*command, "--readers", arguments.readers, "NUMBER",
                                  "end when so many processes have read a version, instead of Ctrl-C");
    readers->check(CLI::Range(Index{1}, index_max))->excludes(watch);
    add_patience(*command, arguments, "how long --readers may take; 300 when not given");
    option(*command, "--transport", arguments.transport, "NAME",
           "between machines: tcp, ucx, or auto, which is ucx where both ends have RDMA; auto when not given")
        ->check(CLI::IsMember({"auto", "tcp", "ucx"}));
    option(*command, "--rules", arguments.rules, "FILE", "for files of ranks: lines pattern = layout of the source");
    option(*command, "--list", arguments.list, "FILE",
           "the whole tensors, name dtype[shape], for files of ranks that lack it");
    add_files(*command, arguments);
}

void add_subscribe(CLI::App& live, Arguments& arguments) {
    CLI::App* command =
        add_command(live, arguments, live_subscribe, "subscribe", "write the newest version into a checkpoint");
    add_endpoint(*command, arguments, "of the publisher");
    option(*command, "into", arguments.into, "PATH",
           "the output, which may not exist yet; {version} in it becomes the number")
        ->required();
    command->add_flag("--follow", arguments.follow, "go on with each newer version, until Ctrl-C");
    add_patience(*command, arguments, "how long to wait for the publisher and a version; 300 when not given");
    option(*command, "--to", arguments.form, "FORM",
           "the form to write; the end of the name decides when not given: " + files::forms_in_words());
    option(*command, "--rules", arguments.rules, "FILE", "lines pattern = layout of the target, for files of ranks");
    add_files(*command, arguments);
}

void add_status(CLI::App& live, Arguments& arguments) {
    CLI::App* command =
        add_command(live, arguments, live_status, "status", "versions, readers and rates of a publisher");
    add_endpoint(*command, arguments, "of the publisher");
    add_patience(*command, arguments, "how long to wait for the publisher; 300 when not given");
}

}  // namespace

void add_live(CLI::App& app, Arguments& arguments) {
    CLI::App* live = app.add_subcommand("live", "versions of a checkpoint from one job to another");
    live->require_subcommand(1);
    add_publish(*live, arguments);
    add_subscribe(*live, arguments);
    add_status(*live, arguments);
}

}  // namespace reshard::cli
