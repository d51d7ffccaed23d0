// Halos prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/dense_runs.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/halo/sum.hpp"

namespace reshard::python {

/// The layouts of a list with their halos. `widths`: for each array and dimension (before, after, periodic).
[[nodiscard]] std::vector<HaloLayout> halo_layouts(const nb::list& layouts, nb::handle widths);

/// A halo exchange that is ready to run.
class PythonHalo : public std::enable_shared_from_this<PythonHalo> {
public:
    /// Collective, within a Call. `layouts`: the owners, one Layout for each array. `widths`: for each array and
    /// dimension (before, after, periodic). `sources`: a Layout for each array, or None for an array in place.
    /// `source_widths`: as widths, for the arrays of the sources.
    static std::shared_ptr<PythonHalo> make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                            nb::handle widths, const nb::list& sources, nb::handle source_widths);
    /// `tiles`: the source tiles, or None for each array in place.
    std::unique_ptr<PythonRun> start(const nb::list& arrays, const nb::list& tiles);
    /// start and wait.
    void run(const nb::list& arrays, const nb::list& tiles);
    void report_failure(nb::handle exception) { kept_.report_failure(exception); }
    [[nodiscard]] const HaloExchange& exchange() const { return kept_.prepared(); }
    /// For each array: its shape on this rank, and the begin and end of its core in each dimension.
    [[nodiscard]] nb::list places() const;

private:
    PythonHalo(std::shared_ptr<Backend> backend, HaloExchange exchange, std::vector<HaloMove> moves)
        : kept_(std::move(backend), std::move(exchange), "halos"), moves_(std::move(moves)) {}
    [[nodiscard]] DenseArrays read(const nb::list& arrays, const nb::list& tiles) const;

    Kept<HaloExchange> kept_;
    std::vector<HaloMove> moves_;
};

/// A sum of halos that is ready to run.
class PythonHaloSum : public std::enable_shared_from_this<PythonHaloSum> {
public:
    /// Collective, within a Call. The arguments are as for PythonHalo.
    static std::shared_ptr<PythonHaloSum> make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                               nb::handle widths);
    std::unique_ptr<PythonRun> start(const nb::list& arrays);
    void report_failure(nb::handle exception) { kept_.report_failure(exception); }

private:
    PythonHaloSum(std::shared_ptr<Backend> backend, HaloSum sum, std::vector<HaloLayout> layouts)
        : kept_(std::move(backend), std::move(sum), "halos"), layouts_(std::move(layouts)) {}

    Kept<HaloSum> kept_;
    std::vector<HaloLayout> layouts_;
};

void add_halo_sums(nb::module_& module);

}  // namespace reshard::python
