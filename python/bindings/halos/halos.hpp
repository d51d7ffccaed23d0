// Halos prepared once on a backend, for loops.
#pragma once

#include <memory>

#include "python/bindings/executors.hpp"
#include "reshard/halo/exchange.hpp"
#include "reshard/halo/sum.hpp"

namespace reshard::python {

/// A dense array in C order of this type and shape, where it lies. Errors: as PythonHalo::start.
[[nodiscard]] Array dense_array(nb::handle object, const std::string& name, Access access, DType dtype,
                                const std::vector<Index>& shape, Index rank);
/// "array", or "array[1]" if there are several.
[[nodiscard]] std::string named(const char* what, std::size_t count, std::size_t number);
/// The layouts of a list with their halos. `widths`: for each array and dimension (before, after, periodic).
[[nodiscard]] std::vector<HaloLayout> halo_layouts(const nb::list& layouts, nb::handle widths);

/// A halo exchange, and the arrays that it is bound to.
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

/// A sum of halos. It stays bound to the arrays of the last run.
class PythonHaloSum : public std::enable_shared_from_this<PythonHaloSum> {
public:
    /// Collective, within a Call. The arguments are as for PythonHalo.
    static std::shared_ptr<PythonHaloSum> make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                               nb::handle widths);
    ~PythonHaloSum();
    std::unique_ptr<PythonRun> start(const nb::list& arrays);
    /// Tells the ranks that wait for this one in a run why it does not start.
    void report_failure(nb::handle exception);
    [[nodiscard]] const HaloSum& sum() const { return sum_; }

private:
    PythonHaloSum(std::shared_ptr<Backend> backend, HaloSum sum, std::vector<HaloLayout> layouts)
        : backend_(std::move(backend)), sum_(std::move(sum)), layouts_(std::move(layouts)) {}

    std::shared_ptr<Backend> backend_;
    HaloSum sum_;
    std::vector<HaloLayout> layouts_;
    std::vector<const std::byte*> addresses_;  // that are bound
    std::shared_ptr<Bound> bound_;
    Home home_;
};

void add_halo_sums(nb::module_& module);

}  // namespace reshard::python
