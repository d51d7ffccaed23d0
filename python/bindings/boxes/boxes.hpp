// Exchanges of boxes prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/dense_runs.hpp"
#include "reshard/boxes/exchange.hpp"

namespace reshard::python {

/// An exchange of boxes that is ready to run.
class PythonBoxes : public std::enable_shared_from_this<PythonBoxes> {
public:
    /// Collective, within a Call. `dtype`: a name. `have`, `want`: boxes as lists of (begin, end).
    static std::shared_ptr<PythonBoxes> make(std::shared_ptr<Backend> backend, nb::handle dtype,
                                             const std::vector<Index>& shape, nb::handle have, nb::handle want,
                                             std::size_t arrays);
    /// Buffers of one dimension, one pair for each array.
    std::unique_ptr<PythonRun> start(const nb::list& have, const nb::list& want);
    void report_failure(nb::handle exception) { kept_.report_failure(exception); }
    [[nodiscard]] const BoxExchange& exchange() const { return kept_.prepared(); }

private:
    PythonBoxes(std::shared_ptr<Backend> backend, BoxExchange exchange, DType dtype)
        : kept_(std::move(backend), std::move(exchange), "boxes"), dtype_(dtype) {}

    Kept<BoxExchange> kept_;
    DType dtype_;
};

void add_rebuilds(nb::module_& module);

}  // namespace reshard::python
