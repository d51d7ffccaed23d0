// Detects a forked process that uses objects of its parent. Threads that held their locks do not exist in it, and peers
// know of one process only.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace reshard {

/// How many forks lie between the start of the program and this process, as far as this library has seen them.
[[nodiscard]] inline unsigned forks() {
    static std::atomic<unsigned> count = 0;
    [[maybe_unused]] static const int counting =
        pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
    return count.load(std::memory_order_relaxed);
}

/// Remembers the process that made it.
class Home {
public:
    [[nodiscard]] bool here() const { return forks_ == forks(); }
    [[nodiscard]] long process() const { return process_; }

private:
    unsigned forks_ = forks();
    long process_ = getpid();
};

/// Moves an object to memory that is never freed, for a forked process.
template <class T>
void leave(T& held) {
    static_cast<void>(new T(std::move(held)));
}

}  // namespace reshard
