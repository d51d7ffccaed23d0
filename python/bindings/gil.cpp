#include "python/bindings/gil.hpp"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace reshard::python {
namespace {

std::atomic<int> attaching = 0;       // threads that wait for the GIL
std::atomic<bool> is_ending = false;  // set by the thread that ends the interpreter
std::thread::id ending_thread;        // written before is_ending

// A thread that counted itself before is_ending was set still gets the GIL; later ones never ask for it.
void begin_to_end() {
    ending_thread = std::this_thread::get_id();
    is_ending = true;
    PyThreadState* const state = PyEval_SaveThread();
    while (attaching > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    PyEval_RestoreThread(state);
}

}  // namespace

Unlocked::~Unlocked() {
    ++attaching;
    if (is_ending && std::this_thread::get_id() != ending_thread) {
        --attaching;
        while (true) pause();
    }
    PyEval_RestoreThread(state_);
    --attaching;
}

void watch_exit() {
    pthread_atfork(nullptr, nullptr, [] { attaching = 0; });  // the other threads are not in the child
    nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function(begin_to_end));
}

}  // namespace reshard::python
