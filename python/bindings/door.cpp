#include "python/bindings/door.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace reshard::python {
namespace {

// The thread that moves on a backend, and its collective call, if it is in one.
struct Mover {
    const Backend* backend;
    std::thread::id thread;
    Call* call;
};

// Never freed: threads may move while the process ends.
struct Turns {
    std::mutex mutex;
    std::condition_variable given_back;
    std::vector<Mover> taken;  // few, and without an allocation for each call

    [[nodiscard]] auto of(const Backend& backend) { return std::ranges::find(taken, &backend, &Mover::backend); }
    bool take(const Backend& backend, Call* call) {
        if (of(backend) != taken.end()) return false;
        taken.push_back({&backend, std::this_thread::get_id(), call});
        return true;
    }
};

Turns& turns() {
    static auto* const only = new Turns;
    return *only;
}

// Null if no thread moves on the backend, or another one. The caller holds the mutex.
Mover* own_move(const Backend& backend) {
    const auto taken = turns().of(backend);
    const bool own = taken != turns().taken.end() && taken->thread == std::this_thread::get_id();
    return own ? &*taken : nullptr;
}

Code code_of(std::string_view word) {
    for (const Code code : {Code::syntax, Code::mesh, Code::layout, Code::overflow, Code::mismatch, Code::step,
                            Code::plan, Code::infeasible, Code::unsupported, Code::io, Code::usage, Code::backend}) {
        if (name(code) == word) return code;
    }
    return Code::usage;
}

bool is_a(nb::handle exception, PyObject* type) { return PyErr_GivenExceptionMatches(exception.ptr(), type) != 0; }

}  // namespace

void finishing(const std::function<void()>& body) noexcept {
    try {
        waiting([&]() -> Result<void> {
            body();
            return {};
        });
    } catch (nb::python_error& raised) {
        if (raised.matches(PyExc_KeyboardInterrupt))
            PyErr_SetInterrupt();
        else
            raised.discard_as_unraisable("reshard, while an object is freed");
    }
}

Error error_of(nb::handle exception) {
    const InPython running;
    const nb::object known = nb::module_::import_("reshard.errors").attr("Error");
    if (nb::isinstance(exception, known)) {
        const nb::str code(exception.attr("code"));
        return {code_of(code.c_str()), nb::str(exception.attr("message")).c_str()};
    }
    const std::string kind = nb::str(exception.type().attr("__name__")).c_str();
    if (!is_a(exception, PyExc_Exception)) return {Code::backend, fmt::format("it was interrupted ({})", kind)};
    Code code = Code::usage;
    if (is_a(exception, PyExc_MemoryError)) code = Code::backend;
    if (is_a(exception, PyExc_OSError)) code = Code::io;
    return {code, fmt::format("{}: {}", kind, nb::str(exception).c_str())};
}

Turn::Turn(const Backend& backend, Call* call) : backend_(&backend) {
    const bool taken = [&] {
        const std::lock_guard lock(turns().mutex);
        return turns().take(*backend_, call);
    }();
    if (!taken)  // raising runs Python, which lets threads go on that wait for the mutex
        raise({Code::usage, "another thread moves on this communicator; calls on one are in one order"});
}

Turn::~Turn() {
    if (forks_ == forks()) give_back(*backend_);  // else another thread of the parent may have held the lock
}

bool Turn::wait(const Backend& backend) {
    std::unique_lock lock(turns().mutex);
    if (own_move(backend) != nullptr) return false;
    turns().given_back.wait(lock, [&] { return turns().take(backend, nullptr); });
    return true;
}

void Turn::give_back(const Backend& backend) {
    const std::lock_guard lock(turns().mutex);
    turns().taken.erase(turns().of(backend));
    turns().given_back.notify_all();
}

Call::Call(std::shared_ptr<Backend> backend, Kind kind) : backend_(std::move(backend)), kind_(kind) {
    turn_.emplace(*backend_, this);
}

// Something was raised between the call's begin and its first line.
Call::~Call() {
    if (!home_.here()) leave(backend_);  // the parent's
    if (backend_ && !voted_) refuse({Code::backend, "it was interrupted"}, true);
}

void Call::vote(const Backend& backend) {
    Call* const call = [&] {
        const std::lock_guard lock(turns().mutex);
        const Mover* const mover = own_move(backend);
        return mover != nullptr ? mover->call : nullptr;
    }();
    if (call == nullptr || std::exchange(call->voted_, true))
        raise({Code::usage, "a collective call has one vote, and is begun before its arguments are read"});
}

void Call::end(nb::handle exception) {
    if (!backend_) return;
    expect_home(home_, "calls");
    const std::shared_ptr<Backend> held = backend_;
    const bool refused = !voted_;
    try {
        if (refused && exception.is_none())
            refuse({Code::usage, "the call did nothing"}, false);
        else if (refused)
            refuse(error_of(exception), !is_a(exception, PyExc_Exception));
    } catch (...) {
        turn_.reset();
        backend_.reset();
        throw;
    }
    turn_.reset();
    backend_.reset();
}

// A rank that was interrupted does not wait for the others, who may come late.
void Call::refuse(const Error& why, bool at_once) {
    voted_ = true;
    const auto tell = [&]() -> Result<void> {
        const std::optional<Interrupt> now = at_once ? std::optional<Interrupt>(
                                                           std::in_place, [] { return true; }, at_once)
                                                     : std::nullopt;
        if (kind_ == Kind::redistribute)
            reshard::refuse(*backend_, why);
        else
            static_cast<void>(backend_->agree(tl::unexpected(why)));
        return {};
    };
    static_cast<void>(waiting(tell));
}

Call::Kind kind_of(const std::string& name) {
    if (name == "prepare") return Call::Kind::prepare;
    if (name == "redistribute") return Call::Kind::redistribute;
    raise({Code::usage, fmt::format("a call is to prepare or to redistribute, not to {}", name)});
}

}  // namespace reshard::python
