// Halos prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/executors.hpp"
#include "reshard/halo/exchange.hpp"

namespace reshard::python {

/// A halo exchange with its bound arrays.
class PythonHalo : public std::enable_shared_from_this<PythonHalo> {
public:
    /// Collective, within a Call. `layouts`: the owners, one Layout for each array. `widths`: for each array and
    /// dimension (before, after, periodic). `sources`: a Layout for each array, or None for an array in place.
    static std::shared_ptr<PythonHalo> make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                            nb::handle widths, const nb::list& sources);
    ~PythonHalo();
    /// `tiles`: the source tiles, or None for each array in place.
    std::unique_ptr<PythonRun> start(const nb::list& arrays, const nb::list& tiles);
    /// Tells the ranks that wait for this one in a run why it does not start.
    void report_failure(nb::handle exception);
    [[nodiscard]] const HaloExchange& exchange() const { return exchange_; }
    /// For each array: its shape on this rank, and the begin and end of its core in each dimension.
    [[nodiscard]] nb::list places() const;

private:
    PythonHalo(std::shared_ptr<Backend> backend, HaloExchange exchange, std::vector<HaloMove> moves)
        : backend_(std::move(backend)), exchange_(std::move(exchange)), moves_(std::move(moves)) {}

    std::shared_ptr<Backend> backend_;
    HaloExchange exchange_;
    std::vector<HaloMove> moves_;
    std::vector<const std::byte*> addresses_;  // that are bound
    std::shared_ptr<Bound> bound_;
    Home home_;
};

}  // namespace reshard::python
