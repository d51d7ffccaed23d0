#include <algorithm>

#include "tool/commands/arguments/options.hpp"

namespace reshard::cli {
namespace {

constexpr Index rounds_max = 1000000;

// --name, with dashes.
std::string flag_name(std::string name) {
    std::ranges::replace(name, '_', '-');
    return "--" + name;
}

// Adds an option of the table src/tables/options.def, by its type.
void add_option(CLI::App& command, const char* name, bool& into, const char*, const char* about) {
    command.add_flag(flag_name(name), into, about);
}
void add_option(CLI::App& command, const char* name, std::optional<std::string>& into, const char* value,
                const char* about) {
    option(command, flag_name(name), into, value, about);
}
void add_option(CLI::App& command, const char* name, std::vector<std::string>& into, const char* value,
                const char* about) {
    option(command, flag_name(name), into, value, about)->delimiter(',')->allow_extra_args(false);
}

}  // namespace

void add_table_options(CLI::App& command, QuestionOptions& options) {
#define RESHARD_OPTION(kind, name, member, value, about) add_option(command, #name, options.name, #value, about);
#define RESHARD_OTHER_OPTION(...)
#include "src/tables/options.def"
}

void add_planner_options(CLI::App& command, Question& question) {
    add_table_options(command, question);
    option(command, "--first", question.first_steps, "STEP",
           "a step that comes first, 'all_gather f32[12288,4096]', or a file of such lines; may be given again")
        ->allow_extra_args(false);
}

CLI::App* add_command(CLI::App& app, Arguments& arguments, Result<int> (*run)(const Arguments&), const char* name,
                      const char* about) {
    CLI::App* command = app.add_subcommand(name, about);
    command->callback([&arguments, run] { arguments.command = run; });
    command->add_flag("--json", arguments.json, "the answer as JSON, schema 1");
    return command;
}

void add_problem(CLI::App& command, Question& question) {
    option(command, "source", question.source, "LAYOUT", "layout of the array now, f32[12288@x,4096]");
    option(command, "target", question.target, "LAYOUT", "layout wanted, f32[12288@y,4096]");
    option(command, "--mesh", question.mesh, "MESH", "named axes of devices, x=2,y=3");
    option(command, "--target-mesh", question.target_mesh, "MESH", "mesh of the target, if it has other axes");
    option(command, "--notation", question.notation, "NOTATION",
           "how meshes and layouts are written: jax (the default), spec, sdy, hlo or dtensor");
    option(command, "--array", question.array, "ARRAY", "element type and shape, f32[8,4], for notations without them");
    option(command, "--permute", question.permute, "ORDER",
           "transpose on the way: 1,0,2 makes dimension 1 of the source dimension 0 of the target, and so on");
    option(command, "--pad", question.pad, "VALUE",
           "the extents may differ: elements that the source lacks get this value, the others are dropped");
    option(command, "--target-array", question.target_array, "ARRAY", "the same for a target of another shape");
}

void add_backend(CLI::App& command, Arguments& arguments, const char* about) {
    constexpr Index most = 1'000'000'000;
    option(command, "--backend", arguments.backend, "BACKEND", about);
    option(command, "--ranks-per-node", arguments.ranks_per_node, "RANKS",
           "under MPI, ranks that share a node; else all, or as found")
        ->check(CLI::Range(Index{1}, most));
}

void add_list(CLI::App& command, Arguments& arguments) {
    CLI::Option* list = option(command, "--list", arguments.list, "FILE",
                               "a file of problems, one line of JSON each, that are moved together; or - for stdin");
    option(command, "--staging-bytes", arguments.staging, "BYTES",
           "how much of a list's footprint limit is kept free for the backend")
        ->needs(list);
}

void add_timeout(CLI::App& command, Arguments& arguments) {
    constexpr Index most = 1'000'000'000;
    option(command, "--timeout", arguments.timeout, "SECONDS",
           "how long a rank waits for an absent one, under MPI; 300 when not given")
        ->check(CLI::Range(Index{1}, most));
}

void add_rounds(CLI::App& command, Arguments& arguments, const char* about) {
    option(command, "--rounds", arguments.rounds, "ROUNDS", about)->check(CLI::Range(Index{1}, rounds_max));
}

}  // namespace reshard::cli
