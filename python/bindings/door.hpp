// What the doors to backends with communicators share: one thread at a time, and ranks that fail alone.
#pragma once

#include "python/bindings/errors.hpp"
#include "reshard/redistribute.hpp"

namespace reshard::python {

/// The right to move on a backend, for the time of a call. Raises InputError when another thread has it.
class Turn : NonCopyable {
public:
    explicit Turn(const Backend& backend);
    ~Turn();

private:
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
        const nb::gil_scoped_release unlocked;
        static_cast<void>(backend.agree(0));
        if (call == Call::redistribute) clear(backend);
        throw;
    }
}

}  // namespace reshard::python
