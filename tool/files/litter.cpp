#include "tool/files/litter.hpp"

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

struct Everything {
    std::recursive_mutex mutex;
    std::vector<std::pair<std::string, Litter::Remove>> litter;
    std::array<int, 2> signals{};  // a pipe, from where a signal arrives to the thread that removes
};

// Never destroyed: a signal may come while the process ends.
Everything& everything() {
    static auto* const all = new Everything;
    return *all;
}

// Only what may be done in a signal: the rest is the thread's.
void on_signal(int number) {
    const int kept = errno;
    const char byte = static_cast<char>(number);
    [[maybe_unused]] const auto put = ::write(everything().signals[1], &byte, 1);
    errno = kept;
}

// Holds the mutex to the end, so that nothing is made or named after what was there has been removed.
void end_at_signal() {
    char byte = 0;
    while (::read(everything().signals[0], &byte, 1) != 1) {
    }
    const auto held = undisturbed();
    for (const auto& [path, remove] : everything().litter) remove(path);
    const int number = byte;
    std::signal(number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    ::kill(::getpid(), number);
    for (;;) ::pause();
}

// Without a thread to spare signals do what they always did.
void watch() {
    if (::pipe2(everything().signals.data(), O_CLOEXEC) != 0) return;
    try {
        std::thread(end_at_signal).detach();
    } catch (const std::system_error&) {
        return;
    }
    for (const int number : endings) {
        // What the process was told to ignore, by nohup perhaps, it ignores.
        if (std::signal(number, on_signal) == SIG_IGN) std::signal(number, SIG_IGN);
    }
}

}  // namespace

// From the first call on signals wait for the mutex.
std::unique_lock<std::recursive_mutex> undisturbed() {
    static std::once_flag once;
    std::call_once(once, watch);
    return std::unique_lock(everything().mutex);
}

Litter::Litter(std::string path, Remove remove) : path_(std::move(path)), remove_(remove) {
    const auto held = undisturbed();
    everything().litter.emplace_back(path_, remove_);
}

Litter::Litter(Litter&& other) noexcept
    : path_(std::exchange(other.path_, {})), remove_(std::exchange(other.remove_, nullptr)) {}

Litter& Litter::operator=(Litter&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(remove_, other.remove_);
    return *this;
}

Litter::~Litter() {
    if (path_.empty()) return;
    const auto held = undisturbed();
    remove_(path_);
    release();
}

void Litter::release() {
    const auto held = undisturbed();
    auto& litter = everything().litter;
    const auto mine = std::ranges::find(litter, path_, [](const auto& one) { return one.first; });
    if (mine != litter.end()) litter.erase(mine);
    path_.clear();
}

std::string name_in(const std::string& folder) {
    std::random_device random;
    return fmt::format("{}/reshard-{:08x}{:08x}.partial", folder, random(), random());
}

}  // namespace reshard::cli
