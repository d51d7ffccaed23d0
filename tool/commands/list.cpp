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
#include "tool/files/file.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::cli {
namespace {

Result<std::vector<std::string>> lines_of(const std::string& path) {
    std::vector<std::string> lines;
    std::istringstream text;
    if (path != "-") {
        auto read = read_text(path);
        if (!read) return in("--list", read.error());
        text.str(std::move(*read));
    }
    std::istream& in = path == "-" ? std::cin : text;
    for (std::string line; std::getline(in, line);) lines.push_back(std::move(line));
    if (in.bad()) return fail(Code::io, "cannot read the list from stdin");
    return lines;
}

bool has_options(const Question& question) {
    return question.vocabulary || question.objective || question.machine || question.peak_bytes_max ||
           question.footprint_bytes_max || question.donate;
}

// The line's problem with the options of the command line.
Result<Request> read_problem(const ProblemLine& line, const Question& common) {
    if (!line.question) return tl::unexpected(line.question.error());
    Question question = *line.question;
    if (has_options(question)) return fail(Code::usage, "the options of a list are those of the command line");
    question.vocabulary = common.vocabulary;
    question.objective = common.objective;
    question.machine = common.machine;
    question.peak_bytes_max = common.peak_bytes_max;
    question.footprint_bytes_max = common.footprint_bytes_max;
    question.donate = common.donate;
    question.without = common.without;
    return understand(question);
}

}  // namespace

Result<RequestList> read_list(const Arguments& arguments) {
    RESHARD_TRY(const auto& lines, lines_of(arguments.list));
    RequestList list;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find_first_not_of(" \t\r") == std::string::npos) continue;
        const ProblemLine line = parse_problem_line(lines[i]);
        auto asked = read_problem(line, arguments.question);
        if (!asked) return in(fmt::format("line {}", i + 1), asked.error());
        list.ids.push_back(line.id);
        list.problems.push_back(std::move(asked->problem));
        list.options = std::move(asked->options);
    }
    if (list.problems.empty()) return fail(Code::usage, "the list is empty");
    list.memory = std::exchange(list.options.limits.memory, {});
    if (arguments.staging.empty()) return list;
    const auto staging = parse_bytes(arguments.staging);
    if (!staging) return in("--staging-bytes", staging.error());
    list.memory.staging_bytes = *staging;
    return list;
}

Index rank_count(const RequestList& list) {
    Index ranks = 0;
    for (const Problem& problem : list.problems)
        ranks = std::max({ranks, world_size(problem.source.mesh), world_size(problem.target.mesh)});
    return ranks;
}

int plan_list(const Arguments& arguments) {
    auto asked = read_list(arguments);
    if (!asked) return refuse(arguments.json, asked.error());
    const auto capabilities = capabilities_of(arguments.backend, rank_count(*asked), arguments.ranks_per_node);
    if (!capabilities) return refuse(arguments.json, capabilities.error());
    asked->options.capabilities = *capabilities;
    const auto made = synthesize(std::span<const Problem>(asked->problems), asked->options, asked->memory);
    if (!made) return refuse(arguments.json, made.error());
    answer(arguments.json ? line(list_json(*asked, *made)) : list_text(*asked, *made));
    return exit_ok;
}

}  // namespace reshard::cli
