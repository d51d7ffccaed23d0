// The GIL, given back while the library works.
#pragma once

#include <nanobind/nanobind.h>

#include "reshard/algebra/run.hpp"

namespace reshard::python {

/// The thread has no GIL during the lifetime. A thread that would get the GIL back after the interpreter has begun to
/// end stays where it is instead: Python before 3.14 ends such a thread by unwinding it, which ends the process in C++.
class Unlocked : NonCopyable {
public:
    Unlocked() noexcept : state_(PyEval_SaveThread()) {}
    ~Unlocked();

private:
    PyThreadState* state_;
};

/// Lets the module know when the interpreter begins to end. Called once by each module.
void watch_exit();

}  // namespace reshard::python
