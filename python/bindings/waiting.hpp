// Calls of the library that may wait, and how a signal ends them.
#pragma once

#include <optional>

#include "python/bindings/errors.hpp"
#include "src/base/interrupt.hpp"

namespace reshard::python {

/// Runs `body`, which returns a Result and may wait for other ranks, without the GIL. Ctrl-C ends its waits, and so
/// does any signal handler that raises. The exception is raised here.
template <class Body>
auto waiting(const Body& body) {
    std::optional<nb::python_error> raised;
    auto answer = [&] {
        const Unlocked unlocked;
        const Interrupt interrupt([&] {
            const Locked locked;
            if (PyErr_CheckSignals() == 0) return false;
            raised.emplace();
            return true;
        });
        return body();
    }();
    if (raised) throw std::move(*raised);
    return answer;
}

}  // namespace reshard::python
