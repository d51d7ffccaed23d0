// What the doors to backends with communicators share: one thread at a time, and ranks that fail alone.
#pragma once

#include "python/bindings/errors.hpp"
#include "reshard/redistribute.hpp"

namespace reshard::python {

/// The right to move on a backend, for the time of a call. Raises InputError when another call has it.
class Turn : NonCopyable {
public:
    explicit Turn(const Backend& backend);
    ~Turn();
    /// For destructors, which cannot raise: calls `body` without the GIL once no other thread moves on the backend. The
    /// thread that moves may itself drop what it holds, while Python code runs in its call.
    template <class Body>
    static void drop(const Backend& backend, const Body& body) {
        const Unlocked unlocked;
        const bool taken = wait(backend);
        body();
        if (taken) give_back(backend);
    }

private:
    [[nodiscard]] static bool wait(const Backend& backend);  // false: this thread has it
    static void give_back(const Backend& backend);

    const Backend* backend_;
};

/// What a rank whose arguments are wrong was about to do. After an error of redistribute no rank keeps anything.
enum class Call { prepare, redistribute };

/// A rank whose arguments are wrong says so to the others, who would wait for it.
template <class Body>
auto or_tell(Backend& backend, Call call, const Body& body) {
    try {
        return body();
    } catch (...) {
        const Unlocked unlocked;
        static_cast<void>(backend.agree(0));
        if (call == Call::redistribute) clear(backend);
        throw;
    }
}

}  // namespace reshard::python
