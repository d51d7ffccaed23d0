#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/bindings/door.hpp"
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

PythonHaloSum::~PythonHaloSum() {
    if (!home_.here()) {  // the parent's locks may be held for ever
        leave(bound_);
        leave(sum_);
        leave(backend_);
        return;
    }
    Turn::drop(*backend_, [&] {
        bound_.reset();
        const HaloSum dropped = std::move(sum_);
    });
}

std::unique_ptr<PythonRun> PythonHaloSum::start(const nb::list& arrays) {
    expect_home(home_, "halos");
    const Turn turn(*backend_);
    if (arrays.size() != layouts_.size())
        raise(
            {Code::mismatch, fmt::format("{} arrays were given, the halo is for {}", arrays.size(), layouts_.size())});
    std::vector<Array> held;
    std::vector<Buffers> buffers;
    std::vector<const std::byte*> addresses;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
        const Index rank = backend_->rank();
        held.push_back(dense_array(arrays[i], named("array", layouts_.size(), i), Access::write,
                                   layouts_[i].owned.dtype, array_shape(layouts_[i], rank), rank));
        Buffers& own = buffers.emplace_back();
        own.target = {held.back().bytes, held.back().size_bytes()};
        addresses.push_back(own.target.data());
    }
    if (!bound_ || addresses != addresses_) {
        bound_.reset();
        bound_ = unwrap(sum_.bind(buffers));
        addresses_ = std::move(addresses);
    }
    auto ticket = [&] {
        const Unlocked unlocked;
        return bound_->start();
    }();
    return std::make_unique<PythonRun>(unwrap(std::move(ticket)), shared_from_this(), *backend_, 1, bound_,
                                       std::move(held));
}

void PythonHaloSum::report_failure(nb::handle exception) {
    if (home_.here()) sum_.report_failure(error_of(exception));
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
