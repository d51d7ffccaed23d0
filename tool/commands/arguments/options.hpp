// Options of the command line: the groups that several subcommands have, and the subcommands with options of their own.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tool/commands/commands.hpp"

namespace reshard::cli {

/// An option or a positional argument. The help calls its value `value`.
template <class T>
CLI::Option* option(CLI::App& command, const std::string& name, T& into, const char* value, const std::string& about) {
    return command.add_option(name, into, about)->type_name(value);
}

/// A subcommand, which `run` carries out, with --json.
CLI::App* add_command(CLI::App& app, Arguments& arguments, Result<int> (*run)(const Arguments&), const char* name,
                      const char* about);

/// The layouts of a question, and how they are written.
void add_problem(CLI::App& command, Question& question);
/// The planner's options, of the table src/tables/options.def, and --first.
void add_planner_options(CLI::App& command, Question& question);
/// The planner's options without --first.
void add_table_options(CLI::App& command, QuestionOptions& options);
void add_backend(CLI::App& command, Arguments& arguments, const char* about);
void add_list(CLI::App& command, Arguments& arguments);
void add_timeout(CLI::App& command, Arguments& arguments);
/// --rounds of timed runs.
void add_rounds(CLI::App& command, Arguments& arguments, const char* about);

// Subcommands whose options are theirs alone.
void add_calibrate(CLI::App& app, Arguments& arguments);
void add_translate(CLI::App& app, Arguments& arguments);
void add_inspect(CLI::App& app, Arguments& arguments);
void add_convert(CLI::App& app, Arguments& arguments);
void add_schedule(CLI::App& app, Arguments& arguments);
/// `live` with its own subcommands. Needs a build with reshard::live.
void add_live(CLI::App& app, Arguments& arguments);

// What a subcommand has beyond a problem, the planner's options and those above.
void add_plan_options(CLI::App& plan, Arguments& arguments);
void add_explain_options(CLI::App& explain, Arguments& arguments);
void add_run_options(CLI::App& run, Arguments& arguments);
void add_emit_options(CLI::App& emit, Arguments& arguments);

}  // namespace reshard::cli
