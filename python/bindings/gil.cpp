#include "python/bindings/gil.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace reshard::python {
namespace {

std::atomic<int> inside = 0;          // threads that wait for the GIL, or run Python
std::atomic<bool> is_ending = false;  // set by the thread that ends the interpreter
std::thread::id ending_thread;        // written before is_ending

bool must_stay() { return is_ending && std::this_thread::get_id() != ending_thread; }

[[noreturn]] void stay() {
    while (true) pause();
}

// The thread has no GIL.
void enter() {
    ++inside;
    if (must_stay()) {
        --inside;
        stay();
    }
}

// Threads that counted themselves before is_ending was set are waited for. Later ones stay.
void begin_to_end() {
    ending_thread = std::this_thread::get_id();
    is_ending = true;
    PyThreadState* const state = PyEval_SaveThread();
    while (inside > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    PyEval_RestoreThread(state);
}

}  // namespace

Unlocked::~Unlocked() {
    enter();
    PyEval_RestoreThread(state_);
    --inside;
}

Locked::Locked() {
    enter();
    state_ = PyGILState_Ensure();
}

Locked::~Locked() {
    PyGILState_Release(state_);
    --inside;
}

InPython::InPython() {
    ++inside;
    if (must_stay()) {
        PyEval_SaveThread();
        --inside;
        stay();
    }
}

InPython::~InPython() { --inside; }

void watch_exit() {
    pthread_atfork(nullptr, nullptr, [] { inside = 0; });  // the other threads are not in the child
    nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(begin_to_end));
}

}  // namespace reshard::python
