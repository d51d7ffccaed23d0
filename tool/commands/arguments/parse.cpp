#include "tool/commands/arguments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/try.hpp"
#include "tool/commands/arguments/complete.hpp"
#include "tool/commands/arguments/options.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"

namespace reshard::cli {
namespace {

void add_commands(CLI::App& app, Arguments& arguments) {
    const auto ask = [&](auto* run, const char* name, const char* about) {
        CLI::App* command = add_command(app, arguments, run, name, about);
        add_problem(*command, arguments.question);
        add_planner_options(*command, arguments.question);
        return command;
    };
    CLI::App* plan = ask(cli::plan, "plan", "the steps, and what they cost, before a byte moves");
    CLI::App* explain = ask(cli::explain, "explain", "the plan beside the alternatives, and why each lost");
    CLI::App* draw = ask(cli::draw, "draw", "which device holds what after each step");
    CLI::App* run = ask(cli::run, "run", "move real data, verify it, predicted beside measured");
    CLI::App* bench = ask(cli::bench, "bench", "the plan measured against the baselines");
    add_calibrate(app, arguments);
    add_translate(app, arguments);
    CLI::App* emit = ask(cli::emit, "emit", "the plan as a program for JAX, StableHLO or PyTorch");
    add_inspect(app, arguments);
    add_convert(app, arguments);
    add_schedule(app, arguments);
#ifdef RESHARD_HAS_LIVE
    add_live(app, arguments);
#endif
    for (CLI::App* command : {plan, explain, draw})
        add_backend(*command, arguments,
                    "the backend of the plan: local, mpi or nccl; when not given, steps run as steps");
    add_plan_options(*plan, arguments);
    add_explain_options(*explain, arguments);
    draw->add_flag("--svg", arguments.svg, "a drawing instead of text");
    add_run_options(*run, arguments);
    add_backend(*bench, arguments, "local or mpi; mpi under mpirun, else local");
    add_timeout(*bench, arguments);
    add_rounds(*bench, arguments, "timed rounds of every contestant; 7 when not given");
    add_emit_options(*emit, arguments);
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

// An empty value is most likely a variable that was not set. It must not count as no value. Parsers refuse it
// themselves, and an empty mesh is one device.
Result<void> no_empty_values(const CLI::App& app) {
    for (const CLI::App* command : app.get_subcommands()) {
        RESHARD_CHECK(no_empty_values(*command));
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
    add_commands(app, arguments);
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
    RESHARD_CHECK(check_complete(arguments));
    RESHARD_CHECK(read_files(arguments.question));
    return std::optional<Arguments>(std::move(arguments));
}

}  // namespace reshard::cli
