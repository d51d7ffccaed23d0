#include "python/bindings/boxes/boxes.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/door.hpp"
#include "python/bindings/files.hpp"

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

std::unique_ptr<PythonRun> PythonBoxes::start(const nb::list& have, const nb::list& want) {
    return kept_.start(shared_from_this(), [&] {
        const BoxExchange& exchange = kept_.prepared();
        const std::size_t arrays = exchange.array_count();
        if (have.size() != arrays || want.size() != arrays)
            raise({Code::mismatch, fmt::format("{} and {} buffers were given, the boxes are for {}", have.size(),
                                               want.size(), arrays)});
        const Index bytes = size_of(dtype_);
        const std::vector<Index> have_shape = {exchange.have_bytes() / bytes};
        const std::vector<Index> want_shape = {exchange.want_bytes() / bytes};
        DenseArrays all;
        for (std::size_t i = 0; i < arrays; ++i) {
            const Index rank = kept_.rank();
            Buffers& own = all.buffers.emplace_back();
            own.source = all.add(have[i], named("have", arrays, i), Access::read, dtype_, have_shape, rank);
            own.target = all.add(want[i], named("want", arrays, i), Access::write, dtype_, want_shape, rank);
        }
        return all;
    });
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
