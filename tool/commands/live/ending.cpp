#include "tool/commands/live/ending.hpp"

#include <csignal>

namespace reshard::cli {
namespace {

using Response = void (*)(int);

volatile std::sig_atomic_t signalled = 0;
Response before_interrupt = SIG_DFL;
Response before_end = SIG_DFL;

// A second signal kills the process.
void note(int number) {
    signalled = 1;
    std::signal(number, SIG_DFL);
}

}  // namespace

Ending::Ending() {
    signalled = 0;
    before_interrupt = std::signal(SIGINT, note);
    before_end = std::signal(SIGTERM, note);
}

Ending::~Ending() {
    std::signal(SIGINT, before_interrupt);
    std::signal(SIGTERM, before_end);
}

bool Ending::raised() { return signalled != 0; }

}  // namespace reshard::cli
