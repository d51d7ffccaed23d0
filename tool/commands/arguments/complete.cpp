#include "tool/commands/arguments/complete.hpp"

#include <sstream>

#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

constexpr Index text_bytes_max = Index{1} << 24;  // of a machine, of first steps

// The problems of a list come from its file, and the options from the command line.
Result<void> complete_list(const Arguments& arguments) {
    const Question& question = arguments.question;
    Question none;
    static_cast<QuestionOptions&>(none) = question;
    if (question != none) return fail(Code::usage, "--list takes its problems from its file alone");
    return {};
}

// True if an option would choose another plan than the one exchange that rows describe.
bool chooses_plan(const Arguments& arguments) {
    const QuestionOptions& options = arguments.question;
    return options != QuestionOptions{} || arguments.batch || arguments.certify || !arguments.backend.empty() ||
           !arguments.staging.empty();
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

}  // namespace

Result<void> check_complete(const Arguments& arguments) {
    const Question& question = arguments.question;
    if (!arguments.log.empty()) {
        if (question != Question{} || arguments.times || arguments.adjoint || !arguments.backend.empty())
            return fail(Code::usage,
                        "--log takes its problems from its file alone, and its plans receive the fewest bytes");
        return {};
    }
    if (!arguments.rows.empty() && question.cast)
        return fail(Code::usage, "--rows move bytes and cast nothing: cast the tiles before the move or after it");
    if (!arguments.rows.empty() && chooses_plan(arguments))
        return fail(Code::usage, "--rows are of the one exchange that moves least: no option chooses another plan");
    if (arguments.batch) {
        if (question != Question{})
            return fail(Code::usage, "--batch takes its problems and their options from stdin alone");
        return {};
    }
    if (!arguments.list.empty() && arguments.endpoint.empty() && arguments.command != convert &&
        arguments.command != inspect)
        return complete_list(arguments);
    const bool none = question.source.empty() && question.target.empty() && question.mesh.empty();
    if (arguments.command == bench && none) return {};
    if (arguments.command == inspect && arguments.from.empty() && arguments.list.empty())
        return fail(Code::usage, "the path of a checkpoint is missing (see reshard inspect --help)");
    if (!arguments.endpoint.empty()) return {};
    for (auto* const other : {calibrate, translate, inspect, convert, cli::schedule})
        if (arguments.command == other) return {};
    if (question.source.empty()) return fail(Code::usage, "the source layout is missing (see reshard --help)");
    if (question.target.empty()) return fail(Code::usage, "the target layout is missing (see reshard --help)");
    return {};
}

Result<void> read_files(Question& question) {
    RESHARD_CHECK(read_machine(question));
    return read_first_steps(question);
}

}  // namespace reshard::cli
