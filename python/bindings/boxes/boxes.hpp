// Exchanges of boxes prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/executors.hpp"
#include "reshard/boxes/exchange.hpp"

namespace reshard::python {

/// An exchange of boxes, and the buffers that it is bound to.
class PythonBoxes : public std::enable_shared_from_this<PythonBoxes> {
public:
    /// Collective, within a Call. `dtype`: a name. `have`, `want`: boxes as lists of (begin, end).
    static std::shared_ptr<PythonBoxes> make(std::shared_ptr<Backend> backend, nb::handle dtype,
                                             const std::vector<Index>& shape, nb::handle have, nb::handle want,
                                             std::size_t arrays);
    ~PythonBoxes();
    /// Buffers of one dimension, one pair for each array.
    std::unique_ptr<PythonRun> start(const nb::list& have, const nb::list& want);
    /// Tells the ranks that wait for this one in a run why it does not start.
    void report_failure(nb::handle exception);
    [[nodiscard]] const BoxExchange& exchange() const { return exchange_; }

private:
    PythonBoxes(std::shared_ptr<Backend> backend, BoxExchange exchange, DType dtype)
        : backend_(std::move(backend)), exchange_(std::move(exchange)), dtype_(dtype) {}

    std::shared_ptr<Backend> backend_;
    BoxExchange exchange_;
    DType dtype_;
    std::vector<const std::byte*> addresses_;  // that are bound
    std::shared_ptr<Bound> bound_;
    Home home_;
};

void add_rebuilds(nb::module_& module);

}  // namespace reshard::python
