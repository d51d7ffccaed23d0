#include "tool/commands/list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>
#include <utility>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::cli {
namespace {

Result<std::vector<std::string>> lines_of(const std::string& path) {
    RESHARD_TRY(auto& text, read_list_text(path));
    std::istringstream in(std::move(text));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
    return lines;
}

// The line's problem with the options of the command line.
Result<Request> read_problem(const ProblemLine& line, const Question& common) {
    RESHARD_TRY(Question question, line.question);
    QuestionOptions& options = question;
    if (options != QuestionOptions{}) return fail(Code::usage, "the options of a list are those of the command line");
    if (question.permute || question.pad)
        return fail(Code::usage, "permute and pad are for one array, not for an array of a list");
    options = common;
    return understand(question);
}

}  // namespace

Result<std::string> read_list_text(const std::string& path) {
    if (path != "-") return in("--list", read_text(path));
    std::string text;
    for (std::string line; std::getline(std::cin, line);) text += line + "\n";
    if (std::cin.bad()) return fail(Code::io, "cannot read the list from stdin");
    return text;
}

Result<RequestList> read_list(const Arguments& arguments) {
    RESHARD_TRY(const auto& lines, lines_of(arguments.list));
    RequestList list;
    std::vector<std::string> notes;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
        const ProblemLine line = parse_problem_line(lines[i]);
        RESHARD_TRY(auto& asked, in(fmt::format("line {}", i + 1), read_problem(line, arguments.question)));
        list.ids.push_back(line.id);
        list.problems.push_back(std::move(asked.problem));
        if (!asked.note.empty()) notes.push_back(fmt::format("line {}: {}", i + 1, asked.note));
        list.notes.push_back(std::move(asked.note));
        list.options = std::move(asked.options);
    }
    if (list.problems.empty()) return fail(Code::usage, "the list is empty");
    // One note is enough to look at the others.
    if (!notes.empty())
        remark(notes.front() + (notes.size() > 1 ? fmt::format(" (as {} more lines are)", notes.size() - 1) : ""));
    list.memory = std::exchange(list.options.limits.memory, {});
    if (arguments.staging.empty()) return list;
    RESHARD_ASSIGN(list.memory.staging_bytes, in("--staging-bytes", parse_bytes(arguments.staging)));
    return list;
}

Index rank_count(const RequestList& list) {
    Index ranks = 0;
    for (const Problem& problem : list.problems) ranks = std::max(ranks, rank_count(problem));
    return ranks;
}

Result<int> plan_list(const Arguments& arguments) {
    RESHARD_TRY(auto& asked, read_list(arguments));
    RESHARD_ASSIGN(asked.options.capabilities,
                   capabilities_of(arguments.backend, rank_count(asked), arguments.ranks_per_node));
    RESHARD_TRY(const auto& made, synthesize(std::span<const Problem>(asked.problems), asked.options, asked.memory));
    return answer(arguments.json ? line(list_json(asked, made)) : list_text(asked, made));
}

}  // namespace reshard::cli
