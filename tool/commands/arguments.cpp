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

void add_problem(CLI::App& command, Question& question) {
    command.add_option("source", question.source, "layout of the array now, f32[12288@x,4096]");
    command.add_option("target", question.target, "layout wanted, f32[12288@y,4096]");
    command.add_option("--mesh", question.mesh, "named axes of devices, x=2,y=3");
    command.add_option("--target-mesh", question.target_mesh, "mesh of the target, when it has other axes");
    command.add_option("--notation", question.notation,
                       "how meshes and layouts are written: jax (the default), spec, sdy, hlo or dtensor");
    command.add_option("--array", question.array,
                       "element type and shape, f32[8,4], where the notation does not say them");
    command.add_option("--target-array", question.target_array, "the same of the target, when it is reshaped");
}

void add_options(CLI::App& command, Question& question) {
    command.add_option("--vocabulary", question.vocabulary,
                       "which steps: all (the default), or collectives, without the universal exchange");
    command.add_option("--objective", question.objective, "what is least: time (the default), bytes or steps");
    command.add_option("--machine", question.machine,
                       "laptop (the default), dgx-h100:nodes=N, tpu-v5p:AxBxC, ethernet:nodes=N,per_node=P, or a file");
    command.add_option("--peak-bytes-max", question.peak_bytes_max, "largest tile allowed on the way");
    command.add_option("--footprint-bytes-max", question.footprint_bytes_max, "most bytes a device may hold at once");
    command
        .add_option(
            "--first", question.first_steps,
            "a first step to take, 'all_gather f32[12288,4096]'; may be given again, or name a file of such lines")
        ->allow_extra_args(false);
    command
        .add_option("--without", question.without,
                    "rules that are not asked for plans, search,three_stage; `explain` names those that are")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_flag("--donate", question.donate,
                     "the source is given away: its memory may hold tiles between steps once it is read");
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
    command.add_option("--backend", arguments.backend, about);
    command
        .add_option("--ranks-per-node", arguments.ranks_per_node,
                    "under MPI, ranks that share a node; else all, or as found")
        ->check(CLI::Range(Index{1}, most));
}

void add_list_options(CLI::App& command, Arguments& arguments) {
    CLI::Option* list = command.add_option(
        "--list", arguments.list, "a file of problems, one line of JSON each, that are moved together; or - for stdin");
    command
        .add_option("--staging-bytes", arguments.staging,
                    "how much of a list's footprint limit is kept free for the backend")
        ->needs(list);
}

void add_timeout(CLI::App& command, Arguments& arguments) {
    constexpr Index most = 1'000'000'000;
    command
        .add_option("--timeout", arguments.timeout,
                    "how long a rank waits for one that does not come, under MPI; 300 when not given")
        ->check(CLI::Range(Index{1}, most));
}

void add_run_options(CLI::App& command, Arguments& arguments) {
    add_backend(command, arguments, "local, mpi or nccl; mpi under mpirun, else local");
    add_timeout(command, arguments);
    command.add_option("--input", arguments.input, "read the array from this .npy file");
    command.add_option("--output", arguments.output, "write the moved array to this .npy file, a pipe or a device");
    command.add_option("--tiles", arguments.tiles,
                       "write every rank's tiles to this folder, in the place of earlier ones");
    command.add_option("--dtype", arguments.dtype,
                       "what elements of the input are that .npy has no type for: bf16, f8_e4m3fn or f8_e5m2");
}

void add_translate(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, translate, "translate", "a layout from one notation to another");
    Question& question = arguments.question;
    command->add_option("layout", question.source, "the layout to translate")->required();
    command->add_option("--from", question.notation, "how it is written: jax (the default), spec, sdy, hlo or dtensor");
    command->add_option("--to", arguments.to, "how it is wanted; jax when not given");
    command->add_option("--mesh", question.mesh,
                        "the mesh, where the notation does not say it; for hlo and dtensor sizes are enough");
    command->add_option("--array", question.array,
                        "element type and shape, f32[8,4], where the notation does not say them");
}

void add_inspect(CLI::App& app, Arguments& arguments) {
    CLI::App* command = add_command(app, arguments, inspect, "inspect", "what is in a checkpoint, and in which files");
    command->add_option("path", arguments.from, files::paths_in_words())->required();
    command->add_option("--tensor", arguments.tensor, "draw which file holds what of this tensor");
}

void add_convert(CLI::App& app, Arguments& arguments) {
    CLI::App* command =
        add_command(app, arguments, convert, "convert", "a checkpoint in one sharding becomes one in another");
    command->add_option("from", arguments.from, files::paths_in_words())->required();
    command->add_option("into", arguments.into, "what is made; nothing may be there yet")->required();
    command->add_option("--rules", arguments.rules,
                        "lines pattern = layout of a target; of a source, where files are of ranks");
    command->add_option("--to", arguments.form,
                        "how it is written; the end of its name says it when not given: " + files::forms_in_words());
    command->add_option("--chunks", arguments.chunks, "of zarr: indices of a chunk in each dimension, 1,90,180")
        ->delimiter(',')
        ->allow_extra_args(false);
    command->add_option("--shards", arguments.shards, "of zarr: those of a file of several chunks")
        ->delimiter(',')
        ->allow_extra_args(false);
    command->add_option("--list", arguments.list,
                        "the whole tensors, name dtype[shape], where files are of ranks and do not say it");
    command
        ->add_option("--cast", arguments.casts,
                     "an element type for all floating tensors, bf16, or for some, *.norm.*=f32; may be given again")
        ->allow_extra_args(false);
    command->add_option("--memory", arguments.memory, "what the process may take; 1GiB when not given");
    command->add_option("--granule", arguments.granule, "what the disk moves at once; 1MiB when not given");
    command->add_option("--file-bytes", arguments.file_bytes, "largest file beside an index; 5GB when not given");
    constexpr Index most = 1024;
    command->add_option("--jobs", arguments.jobs, "threads; as many as processors, at most 8, when not given")
        ->check(CLI::Range(Index{1}, most));
    command->add_flag("--verify", arguments.verify, "read all that was written again and compare checksums");
    command->add_flag("--resume", arguments.resume, "go on where an earlier run of the same command ended");
    command->add_flag("--dry-run", arguments.dry_run, "only say what would be read and written");
}

// CLI11 names the first wrong argument, but of a subcommand that there is not it says only that one is missing.
Error usage_error(const CLI::ParseError& error, int argc, char** argv) {
    const bool lacks_command = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
                               std::string_view(error.what()).find("subcommand") != std::string_view::npos;
    const bool misnamed = lacks_command && argc > 1 && argv[1][0] != '-';
    std::string message = misnamed ? fmt::format("there is no subcommand '{}'", argv[1]) : error.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return {Code::usage, message + " (see reshard --help)"};
}

// The problems come from the file, the options from the command line.
Result<void> complete_list(const Arguments& arguments) {
    const Question& question = arguments.question;
    Question none;
    static_cast<QuestionOptions&>(none) = question;
    if (question != none) return fail(Code::usage, "--list takes its problems from its file alone");
    const bool files = !arguments.input.empty() || !arguments.output.empty() || !arguments.tiles.empty();
    if (files || arguments.certify || !arguments.dtype.empty())
        return fail(Code::usage, "--input, --output, --tiles, --dtype and --certify are for one array, not for --list");
    return {};
}

// Rows are of the one exchange that moves least; there is nothing to choose.
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
    if (arguments.rounds < 1 || arguments.rounds > rounds_max) {
        return fail(Code::usage, fmt::format("--rounds must be from 1 to {}", rounds_max));
    }
    if (arguments.batch) {
        if (!arguments.list.empty()) return fail(Code::usage, "--batch plans problem by problem, --list all together");
        if (arguments.certify) return fail(Code::usage, "--certify is for one plan, not for --batch");
        if (!arguments.backend.empty()) return fail(Code::usage, "--backend is not for --batch");
        if (question != Question{})
            return fail(Code::usage, "--batch takes its problems and their options from stdin alone");
        return {};
    }
    if (!arguments.list.empty() && arguments.command != convert) return complete_list(arguments);
    const bool none = question.source.empty() && question.target.empty() && question.mesh.empty();
    if (arguments.command == bench && none) return {};
    for (auto* const other : {calibrate, translate, inspect, convert})
        if (arguments.command == other) return {};
    if (question.source.empty()) return fail(Code::usage, "the source layout is missing (see reshard --help)");
    if (question.target.empty()) return fail(Code::usage, "the target layout is missing (see reshard --help)");
    return {};
}

// A machine in a file becomes its text.
Result<void> read_machine(Question& question) {
    if (!question.machine || !is_text_file(*question.machine)) return {};
    RESHARD_TRY(const auto& text, in("--machine", read_text(*question.machine, text_bytes_max)));
    question.machine = text + "\n";
    return {};
}

// First steps in a file become its lines; empty ones and those after # are left out.
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

// An empty value is a variable that was not set, a mistake; it must not be taken for no value. What is parsed says so
// itself, or is a mesh: an empty one is one device.
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
    calibrate->add_option("--backend", arguments.backend, "local or mpi; when not given mpi under mpirun, else local");
    calibrate->add_option("--output", arguments.output, "write the machine to this file");
    calibrate->add_option("--rounds", arguments.rounds, "timed rounds of every measurement; 7 when not given");
    calibrate->add_option("--disk", arguments.disk, "instead: how much the disk of this folder is to move at once");
    add_translate(app, arguments);
    CLI::App* emit = ask(cli::emit, "emit", "the plan as a program for JAX, StableHLO or PyTorch");
    emit->add_option("--to", arguments.to, "jax, stablehlo or torch")->required();
    emit->get_option("--vocabulary")->description("which steps: collectives (the default); no framework has others");
    add_inspect(app, arguments);
    add_convert(app, arguments);
    plan->add_flag("--batch", arguments.batch, "problems as lines of JSON on stdin, answers as lines of JSON");
    CLI::Option* certify = plan->add_flag("--certify", arguments.certify,
                                          "have the checker that is extracted from the proofs judge the plan, too");
    plan->add_option("--checker", arguments.checker,
                     "that checker; when not given the environment's RESHARD_CHECKER, else reshard-checker")
        ->needs(certify);
    explain->add_flag("--times", arguments.times, "also how long each rule took");
    CLI::Option* log = explain->add_option("--log", arguments.log,
                                           "explain XLA's \"involuntary full rematerialization\" lines of this file");
    explain->add_option("--waste-max", arguments.waste_max, "fail where XLA receives more than so many times the bytes")
        ->needs(log)
        ->check(CLI::NonNegativeNumber);
    add_list_options(*plan, arguments);
    CLI::Option* rows = plan->add_option("--rows", arguments.rows,
                                         "write what every rank sends, as rows of bytes, to .npy files in this folder");
    plan->add_option("--side", arguments.side, "send (the default) or receive: what each rank receives instead")
        ->needs(rows)
        ->check(CLI::IsMember({"send", "receive"}));
    plan->add_option("--rules", arguments.rules,
                     "lines pattern = layout for both ends; the list's lines are then tensors, name dtype[shape]")
        ->needs(rows)
        ->needs("--list");
    draw->add_flag("--svg", arguments.svg, "a drawing instead of text");
    add_run_options(*run, arguments);
    add_list_options(*run, arguments);
    add_backend(*bench, arguments, "local or mpi; mpi under mpirun, else local");
    for (CLI::App* command : {plan, explain, draw})
        add_backend(*command, arguments,
                    "that the plan is for: local, mpi or nccl; when not given, steps run as steps");
    add_timeout(*bench, arguments);
    add_timeout(*calibrate, arguments);
    bench->add_option("--rounds", arguments.rounds, "timed rounds of every contestant; 7 when not given");
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
