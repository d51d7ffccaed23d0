#include "python/bindings/boxes/boxes.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/door.hpp"
#include "python/bindings/files.hpp"
#include "python/bindings/halos/halos.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

std::vector<Box> boxes_of(nb::handle given) {
    std::vector<Box> boxes;
    for (const auto& sides : nb::cast<std::vector<std::vector<std::pair<Index, Index>>>>(given)) {
        Box& box = boxes.emplace_back();
        for (const auto& [begin, end] : sides) box.push_back({begin, end});
    }
    return boxes;
}

}  // namespace

std::shared_ptr<PythonBoxes> PythonBoxes::make(std::shared_ptr<Backend> backend, nb::handle dtype,
                                               const std::vector<Index>& shape, nb::handle have, nb::handle want,
                                               std::size_t arrays) {
    const DType type = unwrap(parse_dtype(string_of(dtype)));
    const RankBoxes own{boxes_of(have), boxes_of(want)};
    Call::vote(*backend);
    auto prepared = waiting([&] { return BoxExchange::prepare(type, shape, own, *backend, {}, arrays); });
    return std::shared_ptr<PythonBoxes>(new PythonBoxes(std::move(backend), unwrap(std::move(prepared)), type));
}

PythonBoxes::~PythonBoxes() {
    if (!home_.here()) {  // the parent's locks may be held for ever
        leave(bound_);
        leave(exchange_);
        leave(backend_);
        return;
    }
    Turn::drop(*backend_, [&] {
        bound_.reset();
        const BoxExchange dropped = std::move(exchange_);
    });
}

std::unique_ptr<PythonRun> PythonBoxes::start(const nb::list& have, const nb::list& want) {
    expect_home(home_, "boxes");
    const Turn turn(*backend_);
    const std::size_t arrays = exchange_.array_count();
    if (have.size() != arrays || want.size() != arrays)
        raise({Code::mismatch,
               fmt::format("{} and {} buffers were given, the boxes are for {}", have.size(), want.size(), arrays)});
    const Index bytes = size_of(dtype_);
    const std::vector<Index> have_shape = {exchange_.have_bytes() / bytes};
    const std::vector<Index> want_shape = {exchange_.want_bytes() / bytes};
    std::vector<Array> held;
    std::vector<Buffers> buffers;
    std::vector<const std::byte*> addresses;
    for (std::size_t i = 0; i < arrays; ++i) {
        Buffers& own = buffers.emplace_back();
        const Index rank = backend_->rank();
        held.push_back(dense_array(have[i], named("have", arrays, i), Access::read, dtype_, have_shape, rank));
        own.source = {held.back().bytes, held.back().size_bytes()};
        held.push_back(dense_array(want[i], named("want", arrays, i), Access::write, dtype_, want_shape, rank));
        own.target = {held.back().bytes, held.back().size_bytes()};
        addresses.insert(addresses.end(), {own.source.data(), own.target.data()});
    }
    if (!bound_ || addresses != addresses_) {
        bound_.reset();
        bound_ = unwrap(exchange_.bind(buffers));
        addresses_ = std::move(addresses);
    }
    auto ticket = [&] {
        const Unlocked unlocked;
        return bound_->start();
    }();
    return std::make_unique<PythonRun>(unwrap(std::move(ticket)), shared_from_this(), *backend_, 1, bound_,
                                       std::move(held));
}

void PythonBoxes::report_failure(nb::handle exception) {
    if (home_.here()) exchange_.report_failure(error_of(exception));
}

void add_boxes(nb::module_& module) {
    add_rebuilds(module);
    nb::class_<PythonBoxes>(module, "PreparedBoxes", "Boxes that are ready to move. reshard.mpi.Boxes makes them.")
        .def("start", &PythonBoxes::start, "have"_a, "want"_a)
        .def("report_failure", &PythonBoxes::report_failure, "exception"_a)
        .def_prop_ro("received_bytes", [](const PythonBoxes& self) { return self.exchange().traffic().received_bytes; })
        .def_prop_ro("sent_bytes", [](const PythonBoxes& self) { return self.exchange().traffic().sent_bytes; })
        .def("describe", [](const PythonBoxes& self) { return self.exchange().describe(); });
    module.def(
        "prepare_boxes",
        [](std::uintptr_t address, nb::handle dtype, const std::vector<Index>& shape, nb::handle have, nb::handle want,
           std::size_t arrays) { return PythonBoxes::make(backend_at(address), dtype, shape, have, want, arrays); },
        "address"_a, "dtype"_a, "shape"_a, "have"_a, "want"_a, "arrays"_a);
}

}  // namespace reshard::python
