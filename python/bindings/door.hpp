// The rules of backends with communicators: one thread moves at a time, a rank votes once in each collective call, and
// a signal ends waits.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "python/bindings/waiting.hpp"
#include "reshard/redistribute.hpp"
#include "src/base/home.hpp"

namespace reshard::python {

/// As waiting, but raises nothing, for destructors. Ctrl-C is raised later, when Python can.
void finishing(const std::function<void()>& body) noexcept;

/// The error that the other ranks get for an exception: an Error keeps its code and words; others add their type.
[[nodiscard]] Error error_of(nb::handle exception);

class Call;

/// The right to move on a backend, for the time of a call. Raises InputError when another call has it.
class Turn : NonCopyable {
public:
    explicit Turn(const Backend& backend, Call* call = nullptr);
    ~Turn();
    /// For destructors, which cannot raise: calls `body` without the GIL once no other thread moves on the backend. The
    /// thread that moves may itself drop what it holds, while Python code runs in its call.
    template <class Body>
    static void drop(const Backend& backend, const Body& body) {
        finishing([&] {
            const bool taken = wait(backend);
            body();
            if (taken) give_back(backend);
        });
    }

private:
    [[nodiscard]] static bool wait(const Backend& backend);  // false: this thread has it
    static void give_back(const Backend& backend);

    const Backend* backend_;
    unsigned forks_ = forks();  // a Home would ask for the number of the process, which takes as long as a small move
};

/// A collective call of this rank, from before its arguments are looked at until it ends. All ranks agree in it once.
/// If the arguments are right, this rank votes in the library (vote). Otherwise it votes when the call ends, with the
/// exception that ends it.
class Call : NonCopyable {
public:
    /// After an error of redistribute no rank keeps anything.
    enum class Kind { prepare, redistribute };

    Call(std::shared_ptr<Backend> backend, Kind kind);
    ~Call();

    /// The thread that began the call calls this directly before the library's function that agrees.
    static void vote(const Backend& backend);
    /// `exception`: what ends the call, or None.
    void end(nb::handle exception);

private:
    void refuse(const Error& why, bool at_once);

    std::shared_ptr<Backend> backend_;
    Kind kind_;
    std::optional<Turn> turn_;
    Home home_;
    bool voted_ = false;
};

/// Adds the class Call, a context, to a module: `Own`, which is a Call of that module alone. `begin` makes one of the
/// arguments of its own.
template <class Own, class... Arguments, class Begin, class... Extra>
void add_calls(nb::module_& module, Begin begin, const Extra&... extra) {
    using namespace nb::literals;
    nb::class_<Own>(module, "Call", "A collective call of this rank, with one vote: a context.")
        .def(nb::new_([begin](Arguments... arguments) { return begin(arguments...); }), extra...)
        .def("__enter__", [](nb::handle self) { return nb::borrow(self); })
        .def(
            "__exit__", [](Own& self, nb::handle, nb::handle exception, nb::handle) { self.end(exception); },
            "kind"_a.none(), "exception"_a.none(), "traceback"_a.none());
}

/// "prepare" or "redistribute".
[[nodiscard]] Call::Kind kind_of(const std::string& name);

}  // namespace reshard::python
