#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/bindings/door.hpp"
#include "python/bindings/files.hpp"
#include "python/bindings/halos/halos.hpp"

namespace reshard::python {

using namespace nb::literals;

std::shared_ptr<PythonHaloSum> PythonHaloSum::make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                                   nb::handle widths) {
    std::vector<HaloLayout> all = halo_layouts(layouts, widths);
    Call::vote(*backend);
    auto prepared = waiting([&] { return HaloSum::prepare(all, *backend); });
    return std::shared_ptr<PythonHaloSum>(
        new PythonHaloSum(std::move(backend), unwrap(std::move(prepared)), std::move(all)));
}

std::unique_ptr<PythonRun> PythonHaloSum::start(const nb::list& arrays) {
    return kept_.start(shared_from_this(), [&] {
        if (arrays.size() != layouts_.size())
            raise({Code::mismatch,
                   fmt::format("{} arrays were given, the halo is for {}", arrays.size(), layouts_.size())});
        DenseArrays all;
        for (std::size_t i = 0; i < layouts_.size(); ++i) {
            const Index rank = kept_.rank();
            all.buffers.emplace_back().target = all.add(arrays[i], named("array", layouts_.size(), i), Access::write,
                                                        layouts_[i].owned.dtype, array_shape(layouts_[i], rank), rank);
        }
        return all;
    });
}

void add_halo_sums(nb::module_& module) {
    nb::class_<PythonHaloSum>(module, "PreparedHaloSum", "Sums of halos. reshard.mpi.Halo.sum makes them.")
        .def("start", &PythonHaloSum::start, "arrays"_a)
        .def("report_failure", &PythonHaloSum::report_failure, "exception"_a);
    module.def(
        "prepare_halo_sum",
        [](std::uintptr_t address, const nb::list& layouts, nb::handle widths) {
            return PythonHaloSum::make(backend_at(address), layouts, widths);
        },
        "address"_a, "layouts"_a, "widths"_a);
}

}  // namespace reshard::python
