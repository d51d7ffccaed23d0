// Runs over dense arrays: their memory, and what is prepared once and stays bound to the arrays of its last run.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/door.hpp"
#include "python/bindings/executors.hpp"

namespace reshard::python {

/// "array", or "array[1]" if there are several.
[[nodiscard]] std::string named(const char* what, std::size_t count, std::size_t number);

/// The arrays of one run, and their memory.
struct DenseArrays {
    std::vector<Array> held;
    std::vector<Buffers> buffers;  ///< the caller adds an entry for each array of the exchange

    /// Reads an object as a dense array of this type and shape, in C order, where it lies. Returns its memory. Raises
    /// TypeError, InputError (another type, shape or order) and UnsupportedError (memory of a device).
    std::span<std::byte> add(nb::handle object, const std::string& name, Access access, DType dtype,
                             const std::vector<Index>& shape, Index rank);
};

/// Something prepared on a backend, which is bound to the arrays of the last run. `Prepared` has bind and
/// report_failure, as HaloExchange has.
template <class Prepared>
class Kept : NonCopyable {
public:
    /// `what` names it in errors.
    Kept(std::shared_ptr<Backend> backend, Prepared prepared, const char* what)
        : backend_(std::move(backend)), prepared_(std::move(prepared)), what_(what) {}
    ~Kept() {
        if (!home_.here()) {  // the parent's locks may be held for ever
            leave(bound_);
            leave(prepared_);
            leave(backend_);
            return;
        }
        Turn::drop(*backend_, [&] {
            bound_.reset();
            const Prepared dropped = std::move(prepared_);
        });
    }

    [[nodiscard]] const Prepared& prepared() const { return prepared_; }
    [[nodiscard]] const Backend& backend() const { return *backend_; }
    [[nodiscard]] Index rank() const { return backend_->rank(); }

    /// Begins a run over the arrays that `read` returns. `owner` keeps this object alive.
    template <class Read>
    std::unique_ptr<PythonRun> start(std::shared_ptr<const void> owner, const Read& read) {
        expect_home(home_, what_);
        const Turn turn(*backend_);
        DenseArrays arrays = read();
        std::vector<const std::byte*> addresses;
        for (const Buffers& own : arrays.buffers)
            addresses.insert(addresses.end(), {own.source.data(), own.target.data()});
        if (!bound_ || addresses != addresses_) {
            bound_.reset();
            bound_ = unwrap(prepared_.bind(arrays.buffers));
            addresses_ = std::move(addresses);
        }
        return std::make_unique<PythonRun>(unwrap(without_gil([&] { return bound_->start(); })), std::move(owner),
                                           *backend_, 1, bound_, std::move(arrays.held));
    }

    /// A whole run over the one array that `read` returns, in one call of the library.
    template <class Read>
    void run(const Read& read) {
        expect_home(home_, what_);
        const Turn turn(*backend_);
        const DenseArrays arrays = read();
        unwrap(waiting([&] { return prepared_.run(arrays.buffers.front().target); }));
    }

    /// Tells the ranks that wait for this one in a run why it does not start.
    void report_failure(nb::handle exception) {
        if (home_.here()) prepared_.report_failure(error_of(exception));
    }

private:
    std::shared_ptr<Backend> backend_;
    Prepared prepared_;
    const char* what_;
    std::vector<const std::byte*> addresses_;  // that are bound
    std::shared_ptr<Bound> bound_;
    Home home_;
};

}  // namespace reshard::python
