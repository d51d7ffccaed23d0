#include "tool/output/temporary_path.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <random>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace reshard::cli {
namespace {

constexpr std::array<int, 5> endings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

struct Watched {
    std::recursive_mutex mutex;
    std::vector<std::pair<std::string, TemporaryPath::Remove>> paths;
    std::array<int, 2> signals{};  // a pipe from the signal handler to the thread that removes
};

// Never destroyed: a signal may come while the process ends.
Watched& watched() {
    static auto* const all = new Watched;
    return *all;
}

// Does only what a signal handler may do. The thread does the rest.
void on_signal(int number) {
    const int kept = errno;
    const char byte = static_cast<char>(number);
    [[maybe_unused]] const auto put = ::write(watched().signals[1], &byte, 1);
    errno = kept;
}

// Holds the mutex to the end, so that no thread makes or renames a path after all were removed.
void end_at_signal() {
    char byte = 0;
    while (::read(watched().signals[0], &byte, 1) != 1) {
    }
    const auto held = hold_signals();
    for (const auto& [path, remove] : watched().paths) remove(path);
    const int number = byte;
    std::signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::kill(::getpid(), number);
    for (;;) ::pause();
}

// If no thread can be started, signals end the process as usual.
void watch() {
    if (::pipe2(watched().signals.data(), O_CLOEXEC) != 0) return;
    try {
        std::thread(end_at_signal).detach();
    } catch (const std::system_error&) {
        return;
    }
    for (const int number : endings) {
        // The process still ignores the signals that it ignored before, under nohup perhaps.
        if (std::signal(number, on_signal) == SIG_IGN) std::signal(number, SIG_IGN);
    }
}

}  // namespace

// After the first call, signals wait for the mutex.
std::unique_lock<std::recursive_mutex> hold_signals() {
    static std::once_flag once;
    std::call_once(once, watch);
    return std::unique_lock(watched().mutex);
}

TemporaryPath::TemporaryPath(std::string path, Remove remove) : path_(std::move(path)), remove_(remove) {
    const auto held = hold_signals();
    watched().paths.emplace_back(path_, remove_);
}

TemporaryPath::TemporaryPath(TemporaryPath&& other) noexcept
    : path_(std::exchange(other.path_, {})), remove_(std::exchange(other.remove_, nullptr)) {}

TemporaryPath& TemporaryPath::operator=(TemporaryPath&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(remove_, other.remove_);
    return *this;
}

TemporaryPath::~TemporaryPath() {
    if (path_.empty()) return;
    const auto held = hold_signals();
    remove_(path_);
    release();
}

void TemporaryPath::release() {
    const auto held = hold_signals();
    auto& paths = watched().paths;
    const auto mine = std::ranges::find(paths, path_, [](const auto& one) { return one.first; });
    if (mine != paths.end()) paths.erase(mine);
    path_.clear();
}

std::string temporary_name(const std::string& folder) {
    std::random_device random;
    return fmt::format("{}/reshard-{:08x}{:08x}.partial", folder, random(), random());
}

}  // namespace reshard::cli
