#include "tool/commands/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "reshard/files/convert.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

constexpr Index rounds_max = 1000000;
constexpr Index text_bytes_max = Index{1} << 24;  // of a machine, of first steps

// An option or a positional argument; `value` is what the help calls its value.
template <class T>
CLI::Option* option(CLI::App& command, const std::string& name, T& into, const char* value, const std::string& about) {
    return command.add_option(name, into, about)->type_name(value);
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

void add_options(CLI::App& command, Question& question, bool first = true) {
#define RESHARD_OPTION(kind, name, member, value, about) add_option(command, #name, question.name, #value, about);
#define RESHARD_OTHER_OPTION(...)
#include "src/tables/options.def"
    if (!first) return;
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

void add_backend(CLI::App& command, Arguments& arguments, const char* about) {
    constexpr Index most = 1'000'000'000;
    option(command, "--backend", arguments.backend, "BACKEND", about);
    option(command, "--ranks-per-node", arguments.ranks_per_node, "RANKS",
           "under MPI, ranks that share a node; else all, or as found")
        ->check(CLI::Range(Index{1}, most));
}

void add_list_options(CLI::App& command, Arguments& arguments) {
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

void add_run_options(CLI::App& command, Arguments& arguments) {
    add_backend(command, arguments, "local, mpi or nccl; mpi under mpirun, else local");
    add_timeout(command, arguments);
    option(command, "--input", arguments.input, "FILE", "read the array from this .npy file");
    option(command, "--output", arguments.output, "FILE",
           "write the moved array to this .npy file, a pipe or a device");
    option(command, "--tiles", arguments.tiles, "FOLDER",
           "write every rank's tiles to this folder, replacing earlier ones");
    option(command, "--dtype", arguments.dtype, "DTYPE",
           "the element type of the input, if .npy has no name for it: bf16, f8_e4m3fn or f8_e5m2");
}

void add_translate(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, translate, "translate", "a layout from one notation to another");
    Question& question = arguments.question;
    option(*command, "layout", question.source, "LAYOUT", "the layout to translate")->required();
    option(*command, "--from", question.notation, "NOTATION",
           "how it is written: jax (the default), spec, sdy, hlo or dtensor");
    option(*command, "--to", arguments.to, "NOTATION", "how it is wanted; jax when not given");
    option(*command, "--mesh", question.mesh, "MESH",
           "the mesh, for notations without one; hlo and dtensor need only its sizes");
    option(*command, "--array", question.array, "ARRAY",
           "element type and shape, f32[8,4], for notations without them");
}

void add_inspect(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, inspect, "inspect", "what is in a checkpoint, and in which files");
    CLI::Option* path = option(*command, "path", arguments.from, "PATH", files::paths_in_words());
    CLI::Option* tensor =
        option(*command, "--tensor", arguments.tensor, "NAME", "draw which file holds what of this tensor");
    CLI::Option* rules =
        option(*command, "--rules", arguments.rules, "FILE", "what each rank gets of the tensor by these rules");
    rules->needs(tensor)->excludes("--json");
    option(*command, "--list", arguments.list, "FILE", "in place of a path: lines name dtype[shape], - for stdin")
        ->needs(rules)
        ->excludes(path);
}

void add_convert(CLI::App& app, Arguments& arguments) {
    CLI::App* command =
        add_command(app, arguments, convert, "convert", "rewrite a checkpoint from one sharding to another");
    option(*command, "from", arguments.from, "PATH", files::paths_in_words())->required();
    option(*command, "into", arguments.into, "PATH", "the output; it may not exist yet")->required();
    option(*command, "--rules", arguments.rules, "FILE",
           "lines pattern = layout of the target, and of the source for files of ranks");
    option(*command, "--to", arguments.form, "FORM",
           "the form to write; the end of the name decides when not given: " + files::forms_in_words());
    option(*command, "--chunks", arguments.chunks, "INDICES", "of zarr: indices of a chunk in each dimension, 1,90,180")
        ->delimiter(',')
        ->allow_extra_args(false);
    option(*command, "--shards", arguments.shards, "INDICES", "of zarr: indices of a file of several chunks")
        ->delimiter(',')
        ->allow_extra_args(false);
    option(*command, "--codec", arguments.codec, "CODEC",
           "of zarr: zstd:3, gzip:5, blosc:lz4:5:shuffle or none; as the source has it when not given");
    option(*command, "--list", arguments.list, "FILE",
           "the whole tensors, name dtype[shape], for files of ranks that lack it");
    option(*command, "--cast", arguments.casts, "CAST",
           "an element type for all floating tensors, bf16, or for some, *.norm.*=f32; may be given again")
        ->allow_extra_args(false);
    option(*command, "--memory", arguments.memory, "BYTES", "the most memory of the process; 1GiB when not given");
    option(*command, "--scratch", arguments.scratch, "DIR",
           "a folder for an array between, in two passes, if one pass would read or write much more than twice");
    option(*command, "--granule", arguments.granule, "BYTES", "how much the disk moves at once; 1MiB when not given");
    option(*command, "--file-bytes", arguments.file_bytes, "BYTES", "largest file beside an index; 5GB when not given");
    constexpr Index most = 1024;
    option(*command, "--jobs", arguments.jobs, "THREADS", "threads; as many as processors, at most 8, when not given")
        ->check(CLI::Range(Index{1}, most));
    command->add_flag("--verify", arguments.verify, "read all output again and compare checksums");
    command->add_flag("--resume", arguments.resume, "continue an earlier run of the same command");
    command->add_flag("--dry-run", arguments.dry_run, "only say what would be read and written");
}

void add_schedule(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, cli::schedule, "schedule",
                                    "when each task of a program runs and each move travels, under limits on memory");
    CLI::Option* file = option(*command, "program", arguments.program, "FILE",
                               "tasks and arrays, one line of JSON each (docs/programs.md); or - for stdin");
    option(*command, "--generate", arguments.generate, "PROGRAM",
           "a program by name, '1f1b stages=4 microbatches=16 forward=10ms'; 'list' prints all names")
        ->excludes(file);
    add_options(*command, arguments.question, false);
    option(*command, "--rounds", arguments.search_rounds, "ROUNDS",
           "of the local search; 200000 in small programs when not given, fewer in large ones")
        ->check(CLI::Range(Index{0}, index_max));
    command->add_flag("--print-program", arguments.print_program, "only print the program, as lines of JSON");
    command->add_flag("--svg", arguments.svg, "a drawing instead of text");
    command->add_flag("--trace", arguments.trace, "a trace for Perfetto instead of text");
    command->add_flag("--chain", arguments.chain, "also the chain of activities that ends last");
    option(*command, "--script", arguments.script, "DEVICE",
           "the part of one device as JSON, for runtimes that start tasks and moves themselves")
        ->check(CLI::Range(Index{0}, index_max));
    command->add_flag("--frontier", arguments.frontier, "the end under several limits of memory instead");
    option(*command, "--compare", arguments.compared, "PROGRAM", "which of these ends first: files or programs by name")
        ->expected(2, 64);
}

// CLI11 names the first wrong argument. For an unknown subcommand it says only that one is missing.
Error usage_error(const CLI::ParseError& error, int argc, char** argv) {
    const bool lacks_command = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                               std::string_view(error.what()).find("subcommand") != std::string_view::npos;
    const bool misnamed = lacks_command && argc > 1 && argv[1][0] != '-';
    std::string message = misnamed ? fmt::format("there is no subcommand '{}'", argv[1]) : error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return {Code::usage, message + " (see reshard --help)"};
}

// The problems of a list come from its file, and the options from the command line.
Result<void> complete_list(const Arguments& arguments) {
    const Question& question = arguments.question;
    Question none;
    static_cast<QuestionOptions&>(none) = question;
    if (question != none) return fail(Code::usage, "--list takes its problems from its file alone");
    return {};
}

// Rows describe the one exchange that moves least, so no option applies.
Result<void> complete_rows(const Arguments& arguments) {
    const QuestionOptions& options = arguments.question;
    if (options != QuestionOptions{} || arguments.batch || arguments.certify || !arguments.backend.empty() ||
        !arguments.staging.empty())
        return fail(Code::usage, "--rows are of the one exchange that moves least: no option chooses another plan");
    return {};
}

Result<void> complete(const Arguments& arguments) {
    const Question& question = arguments.question;
    if (!arguments.log.empty()) {
        if (question != Question{} || arguments.times || !arguments.backend.empty())
            return fail(Code::usage,
                        "--log takes its problems from its file alone, and its plans receive the fewest bytes");
        return {};
    }
    if (!arguments.rows.empty()) RESHARD_CHECK(complete_rows(arguments));
    if (arguments.batch) {
        if (question != Question{})
            return fail(Code::usage, "--batch takes its problems and their options from stdin alone");
        return {};
    }
    if (!arguments.list.empty() && arguments.command != convert && arguments.command != inspect)
        return complete_list(arguments);
    const bool none = question.source.empty() && question.target.empty() && question.mesh.empty();
    if (arguments.command == bench && none) return {};
    if (arguments.command == inspect && arguments.from.empty() && arguments.list.empty())
        return fail(Code::usage, "the path of a checkpoint is missing (see reshard inspect --help)");
    for (auto* const other : {calibrate, translate, inspect, convert, cli::schedule})
        if (arguments.command == other) return {};
    if (question.source.empty()) return fail(Code::usage, "the source layout is missing (see reshard --help)");
    if (question.target.empty()) return fail(Code::usage, "the target layout is missing (see reshard --help)");
    return {};
}

// Replaces the name of a machine's file by its text.
Result<void> read_machine(Question& question) {
    if (!question.machine || !is_text_file(*question.machine)) return {};
    RESHARD_TRY(const auto& text, in("--machine", read_text(*question.machine, text_bytes_max)));
    question.machine = text + "\n";
    return {};
}

// Replaces the name of a file of first steps by its lines, without empty lines and comments (#).
Result<void> read_first_steps(Question& question) {
    std::vector<std::string> steps;
    for (const std::string& given : question.first_steps) {
        if (!is_text_file(given)) {
            steps.push_back(given);
            continue;
        }
        RESHARD_TRY(const auto& text, in("--first", read_text(given, text_bytes_max)));
        std::istringstream file(text);
        for (std::string line; std::getline(file, line);)
            if (line.find_first_not_of(' ') != std::string::npos && line[line.find_first_not_of(' ')] != '#')
                steps.push_back(line);
    }
    question.first_steps = std::move(steps);
    return {};
}

// An empty value is most likely a variable that was not set. It must not count as no value. Parsers refuse it
// themselves, and an empty mesh is one device.
Result<void> no_empty_values(const CLI::App& app) {
    for (const CLI::App* command : app.get_subcommands()) {
        for (const CLI::Option* option : command->get_options()) {
            const bool parsed =
                option->get_positional() || option->check_name("--mesh") || option->check_name("--target-mesh");
            if (!parsed && std::ranges::count(option->results(), std::string()) > 0)
                return fail(Code::usage, fmt::format("{}: its value is empty", option->get_name()));
        }
    }
    return {};
}

}  // namespace

Result<Request> request_for(const Arguments& arguments) {
    RESHARD_TRY(auto& asked, understand(arguments.question));
    remark(asked.note);
    const Index ranks = rank_count(asked.problem);
    RESHARD_ASSIGN(asked.options.capabilities, capabilities_of(arguments.backend, ranks, arguments.ranks_per_node));
    return std::move(asked);
}

Result<std::optional<Arguments>> parse_arguments(int argc, char** argv) {
    CLI::App app("reshard: the cheapest way from one layout of a distributed array to another", "reshard");
    app.require_subcommand(1);
    app.set_version_flag("--version", "reshard " RESHARD_VERSION);
    Arguments arguments;
    const auto ask = [&](auto* run, const char* name, const char* about) {
        CLI::App* command = add_command(app, arguments, run, name, about);
        add_problem(*command, arguments.question);
        add_options(*command, arguments.question);
        return command;
    };
    CLI::App* plan = ask(cli::plan, "plan", "the steps, and what they cost, before a byte moves");
    CLI::App* explain = ask(cli::explain, "explain", "the plan beside the alternatives, and why each lost");
    CLI::App* draw = ask(cli::draw, "draw", "which device holds what after each step");
    CLI::App* run = ask(cli::run, "run", "move real data, verify it, predicted beside measured");
    CLI::App* bench = ask(cli::bench, "bench", "the plan measured against the baselines");
    CLI::App* calibrate =
        add_command(app, arguments, cli::calibrate, "calibrate", "measure this machine, for --machine");
    option(*calibrate, "--backend", arguments.backend, "BACKEND",
           "local or mpi; when not given mpi under mpirun, else local");
    option(*calibrate, "--output", arguments.output, "FILE", "write the machine to this file");
    option(*calibrate, "--rounds", arguments.rounds, "ROUNDS", "timed rounds of every measurement; 7 when not given")
        ->check(CLI::Range(Index{1}, rounds_max));
    option(*calibrate, "--disk", arguments.disk, "FOLDER",
           "instead: measure how much the disk of this folder moves at once");
    add_translate(app, arguments);
    CLI::App* emit = ask(cli::emit, "emit", "the plan as a program for JAX, StableHLO or PyTorch");
    option(*emit, "--to", arguments.to, "FRAMEWORK", "jax, stablehlo or torch")->required();
    emit->get_option("--vocabulary")->description("which steps: collectives (the default); no framework has others");
    add_inspect(app, arguments);
    add_convert(app, arguments);
    add_schedule(app, arguments);
    CLI::Option* batch =
        plan->add_flag("--batch", arguments.batch, "problems as lines of JSON on stdin, answers as lines of JSON");
    CLI::Option* certify = plan->add_flag("--certify", arguments.certify,
                                          "also judge the plan with the checker that is extracted from the proofs");
    option(*plan, "--checker", arguments.checker, "PROGRAM",
           "that checker; when not given the environment's RESHARD_CHECKER, else reshard-checker")
        ->needs(certify);
    explain->add_flag("--times", arguments.times, "also how long each rule took");
    CLI::Option* log = option(*explain, "--log", arguments.log, "FILE",
                              "explain XLA's \"involuntary full rematerialization\" lines of this file");
    option(*explain, "--waste-max", arguments.waste_max, "RATIO",
           "fail if XLA receives more than so many times the bytes")
        ->needs(log)
        ->check(CLI::NonNegativeNumber);
    add_list_options(*plan, arguments);
    CLI::Option* rows = option(*plan, "--rows", arguments.rows, "FOLDER",
                               "write what every rank sends, as rows of bytes, to .npy files in this folder");
    option(*plan, "--side", arguments.side, "SIDE", "send (the default) or receive: what each rank receives instead")
        ->needs(rows)
        ->check(CLI::IsMember({"send", "receive"}));
    for (const auto& [name, place, end] : {std::tuple("--source-storage", &arguments.source_storage, "source"),
                                           std::tuple("--target-storage", &arguments.target_storage, "target")})
        option(*plan, name, *place, "STORAGE",
               fmt::format(
                   "of the {} tiles: 'order 1,0' (dense, outermost first) or 'strides 8,1 offset 4' in elements", end))
            ->needs(rows)
            ->excludes("--list");
    plan->add_flag("--nested", arguments.nested, "rows of four nested loops: fewer, 17 numbers each")->needs(rows);
    option(*plan, "--rules", arguments.rules, "FILE",
           "lines pattern = layout for both ends; the list's lines are then tensors, name dtype[shape]")
        ->needs(rows)
        ->needs("--list");
    batch->excludes(certify)->excludes("--list");
    plan->get_option("--list")->excludes(certify);
    draw->add_flag("--svg", arguments.svg, "a drawing instead of text");
    add_run_options(*run, arguments);
    add_list_options(*run, arguments);
    for (const char* const of_one_array : {"--input", "--output", "--tiles", "--dtype"})
        run->get_option("--list")->excludes(of_one_array);
    add_backend(*bench, arguments, "local or mpi; mpi under mpirun, else local");
    for (CLI::App* command : {plan, explain, draw})
        add_backend(*command, arguments,
                    "the backend of the plan: local, mpi or nccl; when not given, steps run as steps");
    batch->excludes("--backend");
    add_timeout(*bench, arguments);
    add_timeout(*calibrate, arguments);
    option(*bench, "--rounds", arguments.rounds, "ROUNDS", "timed rounds of every contestant; 7 when not given")
        ->check(CLI::Range(Index{1}, rounds_max));
    complete_help(app);
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success&) {
        const bool version = app.get_option("--version")->count() > 0;
        answer(version ? "reshard " RESHARD_VERSION "\n" : app.help());
        return std::optional<Arguments>();
    } catch (const CLI::ParseError& error) {
        return tl::unexpected(usage_error(error, argc, argv));
    }
    RESHARD_CHECK(no_empty_values(app));
    RESHARD_CHECK(complete(arguments));
    RESHARD_CHECK(read_machine(arguments.question));
    RESHARD_CHECK(read_first_steps(arguments.question));
    return std::optional<Arguments>(std::move(arguments));
}

}  // namespace reshard::cli
