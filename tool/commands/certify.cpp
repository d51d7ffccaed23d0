#include "tool/commands/certify.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "files/base/file.hpp"
#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/text/certificate.hpp"
#include "tool/console/terminal.hpp"
#include "tool/console/text_file.hpp"

namespace reshard::cli {
namespace {

constexpr const char* checker_name = "reshard-checker";
constexpr std::size_t answer_bytes_max = std::size_t{1} << 16;

bool is_program(const std::string& path) {
    std::error_code unknown;
    return std::filesystem::is_regular_file(path, unknown) && access(path.c_str(), X_OK) == 0;
}

Result<std::string> find_checker(const std::string& named) {
    const char* const environment = std::getenv("RESHARD_CHECKER");
    const std::string given = !named.empty() ? named : environment != nullptr ? environment : "";
    if (!given.empty()) {
        if (is_program(given)) return given;
        return fail(Code::backend, fmt::format("there is no checker at {}", given));
    }
    const char* const path = std::getenv("PATH");
    std::string_view folders = path != nullptr ? path : "";
    while (!folders.empty()) {
        const std::string_view folder = folders.substr(0, folders.find(':'));
        folders.remove_prefix(std::min(folders.size(), folder.size() + 1));
        const std::string program = fmt::format("{}/{}", folder, checker_name);
        if (!folder.empty() && is_program(program)) return program;
    }
    std::error_code unknown;
    const auto beside = std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / checker_name;
    if (!unknown && is_program(beside.string())) return beside.string();
    return fail(Code::backend,
                "no proved checker is installed: there is no reshard-checker on PATH or beside the tool, and neither "
                "--checker nor RESHARD_CHECKER names one (a build that finds coqc and ocamlopt makes it)");
}

std::string read_all(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    while (text.size() < answer_bytes_max) {
        const ssize_t count = read(fd, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
}

/// One line to a process on its stdin, the first line of its stdout back; empty when it did not answer.
std::string converse(const std::string& program, const std::string& line) {
    auto question = files::File::pipe();
    auto reply = files::File::pipe();
    if (!question || !reply) return "";
    std::optional<files::File> asked(std::move(question->first)), asks(std::move(question->second));
    std::optional<files::File> answered(std::move(reply->first)), answers(std::move(reply->second));
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, asked->descriptor(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, answers->descriptor(), STDOUT_FILENO);
    // The tool ignores SIGPIPE; a checker that nobody listens to should end.
    sigset_t pipes;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &pipes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    std::string name = program;
    std::array<char*, 2> arguments = {name.data(), nullptr};
    pid_t child = 0;
    const int failed = posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (failed != 0) return "";
    asked.reset();
    answers.reset();
    const std::string sent = line + "\n";
    const bool heard = asks->append(std::as_bytes(std::span(sent))).has_value();
    asks.reset();
    const std::string text = heard ? read_all(answered->descriptor()) : "";
    answered.reset();
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return text.substr(0, text.find('\n'));
}

std::optional<Index> number_after(std::string_view text, std::string_view word) {
    const auto at = text.find(word);
    if (at == std::string_view::npos) return std::nullopt;
    Index number = 0;
    const auto rest = text.substr(at + word.size());
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// The checker's words about a line that it accepts.
Result<std::string> accepted(const std::string& line, const std::string& named) {
    RESHARD_TRY(const auto& program, find_checker(named));
    std::string text = converse(program, line);
    if (text.starts_with("reject")) return fail(Code::plan, fmt::format("the proved checker says: {}", text));
    if (!text.starts_with("accept ")) return fail(Code::backend, fmt::format("the checker {} did not answer", program));
    return text;
}

std::string claim_of(std::string_view text, std::optional<Index> bound) {
    if (text.ends_with(" optimal")) return "proved optimal";
    const auto within = text.find(" within ");
    if (within != std::string_view::npos) return fmt::format("proved{} of the bound", text.substr(within));
    return bound ? "proved, the lower bound is 0" : "proved, no lower bound is known";
}

}  // namespace

Result<Certified> certify(const Judged<Plan>& given, const std::string& named) {
    // The checker counts elements of one size, so the move without its cast is certified, in the source's type.
    RESHARD_TRY(const auto& judged, given.plan().source.dtype == given.plan().target.dtype
                                        ? Result<Judged<Plan>>(given)
                                        : judge(notation::without_casts(given.plan()), given.execution()));
    const Plan& plan = judged.plan();
    const Verdict& verdict = judged.verdict();
    const Limits& limits = judged.limits();
    const Index size = size_of(plan.source.dtype);
    std::optional<Index> elements_max;
    if (limits.peak_bytes_max) elements_max = *limits.peak_bytes_max / size;
    RESHARD_TRY(const auto& line, notation::certificate(plan, elements_max));
    RESHARD_TRY(const auto& text, accepted(line, named));
    const auto peak = number_after(text, " peak=");
    const auto received = number_after(text, " received=");
    if (!peak || !received)
        return fail(Code::backend, fmt::format("the checker did not answer with numbers: {}", text));
    Certified certified{saturating_multiply(*peak, size), saturating_multiply(*received, size), std::nullopt, ""};
    const auto bound = number_after(text, " lower_bound=");
    if (bound) certified.lower_bound_bytes = saturating_multiply(*bound, size);
    certified.claim = claim_of(text, bound);
    // Two judges that disagree about a number are not both right. The checker has no bound where summands stay or
    // arrive.
    if (certified.peak_bytes != verdict.peak_bytes || certified.received_bytes != verdict.received_bytes ||
        certified.lower_bound_bytes.value_or(verdict.lower_bound_bytes) != verdict.lower_bound_bytes)
        return fail(Code::plan, fmt::format("the proved checker derives other figures than the judge: {}", text));
    return certified;
}

Result<Index> certify(const OwnedBoxes& boxes, const std::string& named) {
    RESHARD_TRY(const auto& line, certificate(boxes));
    RESHARD_TRY(const auto& text, accepted(line, named));
    const auto received = number_after(text, " received=");
    if (!received) return fail(Code::backend, fmt::format("the checker did not answer with numbers: {}", text));
    return *received;
}

std::string certified_line(const Certified& certified) {
    return fmt::format("certified: {}   peak {}   received at most {} a device\n", green(certified.claim, page()),
                       format_bytes(certified.peak_bytes), format_bytes(certified.received_bytes));
}

Json certified_json(const Certified& certified) {
    Json json = {{"claim", certified.claim},
                 {"peak_bytes", certified.peak_bytes},
                 {"received_bytes", certified.received_bytes},
                 {"lower_bound_bytes", nullptr}};
    if (certified.lower_bound_bytes) json["lower_bound_bytes"] = *certified.lower_bound_bytes;
    return json;
}

}  // namespace reshard::cli
