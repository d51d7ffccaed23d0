#include "meaning/watch.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace reshard::test {

namespace {

constexpr int computing_seconds_max = 30;
constexpr unsigned seconds_max = 300;  // wall time on a busy machine

// Set before each question. Signal handlers only read it and write it out.
std::array<char, 4096> question{};
std::size_t question_bytes = 0;

void say(const char* what) {
    if (question_bytes == 0) return;
    for (const auto& [text, bytes] :
         {std::pair{what, std::strlen(what)}, std::pair<const char*, std::size_t>{question.data(), question_bytes}})
        if (::write(STDERR_FILENO, text, bytes) < 0) return;
}

extern "C" void say_what_hangs(int) {
    say("\nno answer, of: ");
    _exit(1);
}

#ifdef __SANITIZE_ADDRESS__
void say_what_died() { say("\ndied of: "); }

void install() { __sanitizer_set_death_callback(say_what_died); }
#else
extern "C" void say_what_crashed(int number, siginfo_t*, void*) {
    say("\ncrashed by: ");
    std::signal(number, SIG_DFL);
    std::raise(number);
}

// Handlers have their own stack, since an endless recursion has used up the normal one.
void install() {
    static std::array<std::byte, std::size_t{1} << 16> other_stack;
    const stack_t stack{other_stack.data(), 0, other_stack.size()};
    sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_sigaction = say_what_crashed;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(number, &action, nullptr);
}
#endif

}  // namespace

void watch(const std::string& line) {
    static const bool installed = [] {
        install();
        for (const int number : {SIGALRM, SIGPROF}) std::signal(number, say_what_hangs);
        return true;
    }();
    static_cast<void>(installed);
    question_bytes = std::min(line.size(), question.size() - 1);
    std::copy_n(line.data(), question_bytes, question.data());
    question[question_bytes++] = '\n';
    alarm(seconds_max);
    const itimerval computing{{0, 0}, {computing_seconds_max, 0}};
    setitimer(ITIMER_PROF, &computing, nullptr);
}

void watch_nothing() {
    question_bytes = 0;
    alarm(0);
    const itimerval none{};
    setitimer(ITIMER_PROF, &none, nullptr);
}

}  // namespace reshard::test
