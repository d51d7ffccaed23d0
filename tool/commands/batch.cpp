// `reshard plan --batch`: a bad line gets an error line of its own, and the rest go on.
#include <fmt/format.h>

#include <chrono>
#include <iostream>

#include "tool/commands/commands.hpp"
#include "tool/console/exit.hpp"
#include "tool/console/terminal.hpp"
#include "tool/request/json.hpp"
#include "tool/request/problem_line.hpp"

namespace reshard::cli {
namespace {

// A line longer than this is no problem but a mistake; reading on costs no memory.
constexpr std::size_t line_bytes_max = std::size_t{1} << 24;

struct Line {
    std::string text;
    bool too_long = false;
};

bool next(std::streambuf& in, Line& line) {
    line = {};
    int c = in.sbumpc();
    if (c == std::streambuf::traits_type::eof()) return false;
    for (; c != std::streambuf::traits_type::eof() && c != '\n'; c = in.sbumpc()) {
        if (line.text.size() < line_bytes_max) {
            line.text += static_cast<char>(c);
        } else {
            line.too_long = true;
        }
    }
    return true;
}

bool blank(const std::string& text) { return text.find_first_not_of(" \t\r") == std::string::npos; }

Json solve(const Line& input) {
    if (input.too_long) return error_json(nullptr, {Code::syntax, "the line is longer than 16 MiB"});
    const ProblemLine problem = parse_problem_line(input.text);
    if (!problem.question) return error_json(problem.id, problem.question.error());
    const auto asked = understand(*problem.question);
    if (!asked) return error_json(problem.id, asked.error());
    const auto begin = std::chrono::steady_clock::now();
    const auto made = synthesize(asked->problem, asked->options);
    const auto spent = std::chrono::steady_clock::now() - begin;
    if (!made) return error_json(problem.id, made.error());
    return plan_json(problem.id, *asked, *made, std::chrono::duration_cast<std::chrono::microseconds>(spent).count());
}

// Errors: io, where stdin is a folder or was not given.
Result<bool> next_problem(Line& line) {
    try {
        return next(*std::cin.rdbuf(), line);
    } catch (const std::ios_base::failure& failed) {
        return fail(Code::io, fmt::format("cannot read stdin: {}", failed.code().message()));
    }
}

}  // namespace

int batch() {
    std::ios::sync_with_stdio(false);
    int code = exit_ok;
    Line input;
    for (;;) {
        const auto more = next_problem(input);
        if (!more) return complain(more.error());
        if (!*more) break;
        if (!input.too_long && blank(input.text)) continue;
        const Json solved = solve(input);
        if (solved.contains("error")) code = exit_wrong;
        answer(line(solved));
        if (!heard()) break;  // a caller may wait for this answer before the next question; or nobody listens
    }
    return code;
}

}  // namespace reshard::cli
