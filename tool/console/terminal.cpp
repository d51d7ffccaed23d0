#include "tool/console/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "tool/console/exit.hpp"

namespace reshard::cli {
namespace {

int lost = 0;  // why an answer could not be written

std::optional<Index> number_in_environment(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    const std::string_view view(text);
    Index value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc() || end != view.data() + view.size()) return std::nullopt;
    return value;
}

// Open MPI, then the process managers of MPICH and its relatives, then Slurm's own launcher.
std::optional<Index> launched(const char* open_mpi, const char* pmi) {
    if (const auto value = number_in_environment(open_mpi)) return value;
    return number_in_environment(pmi);
}

// MPI launchers give their ranks a terminal of their own making and forward what they write, to a file perhaps.
bool stdout_is_terminal() {
    static const bool terminal = isatty(STDOUT_FILENO) != 0 && launched_ranks() == 0;
    return terminal;
}

}  // namespace

bool speaks() {
    static const bool first = launched("OMPI_COMM_WORLD_RANK", "PMI_RANK").value_or(0) == 0;
    return first;
}

Index launched_ranks() {
    static const Index ranks = launched("OMPI_COMM_WORLD_SIZE", "PMI_SIZE").value_or(0);
    return ranks;
}

Page page() {
    Page page{.colour = stdout_is_terminal() && std::getenv("NO_COLOR") == nullptr};
    winsize size{};
    if (stdout_is_terminal() && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        page.width = size.ws_col;
    return page;
}

int answer(std::string_view text) {
    if (speaks() && lost == 0 && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) lost = errno;
    return exit_ok;
}

bool heard() {
    if (lost == 0 && std::fflush(stdout) != 0) lost = errno;
    return lost == 0;
}

int why_not_heard() { return lost; }

Progress::Progress(bool shown)
    : shown_(shown && speaks() && isatty(STDERR_FILENO) != 0), next_(Clock::now() + std::chrono::seconds(1)) {}

Progress::~Progress() {
    if (dirty_) fmt::print(stderr, "\r\x1b[K");
}

void Progress::at(std::string_view phase, Index done, Index all) {
    if (!shown_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(200);
    const Index percent = all > 0 ? scale_up(done, 100, all) : 100;
    fmt::print(stderr, "\r\x1b[K{} {}%", phase, percent);
    std::fflush(stderr);
    dirty_ = true;
}

}  // namespace reshard::cli
