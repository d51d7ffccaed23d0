// The GIL, given back while the library works, and threads that outlive the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include "reshard/backends/run.hpp"

namespace reshard::python {

// Python before 3.14 ends a thread that asks for the GIL after the interpreter has begun to end, by unwinding its
// stack. That ends the process in C++. So from then on a thread of a daemon stays where it is: before it gets the GIL
// back (Unlocked), and before it runs Python, which gives the GIL away at any time (InPython).

/// The thread has no GIL during the lifetime.
class Unlocked : NonCopyable {
public:
    Unlocked() noexcept : state_(PyEval_SaveThread()) {}
    ~Unlocked();

private:
    PyThreadState* state_;
};

/// Runs the body without the GIL and returns its result.
template <class Body>
auto without_gil(const Body& body) {
    const Unlocked unlocked;
    return body();
}

/// A thread without the GIL has it during the lifetime.
class Locked : NonCopyable {
public:
    Locked();
    ~Locked();

private:
    PyGILState_STATE state_;
};

/// This module runs Python code during the lifetime, for a short time. The interpreter ends afterwards.
class InPython : NonCopyable {
public:
    InPython();
    ~InPython();
};

/// Lets the module know when the interpreter begins to end. Called once by each module.
void watch_exit();

}  // namespace reshard::python
