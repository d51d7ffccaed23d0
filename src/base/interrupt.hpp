// Lets a caller end waits for other ranks early.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace reshard {

/// While an Interrupt lives, the waits of its thread ask it whether they must end. They ask the one that was made last.
class Interrupt {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds interval{100};  ///< between two questions

    /// `asked` returns true if waits must end, and is not called again then. If `raised`, they must end at once.
    explicit Interrupt(std::function<bool()> asked, bool raised = false)
        : asked_(std::move(asked)), before_(std::exchange(last(), this)), raised_(raised) {}
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;
    ~Interrupt() { last() = before_; }

    /// True if the waits of this thread must end: this one, and all others while the Interrupt lives.
    [[nodiscard]] static bool raised() { return last() != nullptr && last()->ask(); }

    /// The message of a wait that was interrupted; its code is backend.
    static constexpr const char* words = "the wait was interrupted";

private:
    static Interrupt*& last() {
        thread_local Interrupt* one = nullptr;
        return one;
    }
    bool ask() {
        if (raised_) return true;
        const auto now = Clock::now();
        if (now < next_) return false;
        raised_ = asked_();
        next_ = Clock::now() + interval;
        return raised_;
    }

    std::function<bool()> asked_;
    Interrupt* before_;
    bool raised_;
    Clock::time_point next_ = Clock::now() + interval;
};

}  // namespace reshard
