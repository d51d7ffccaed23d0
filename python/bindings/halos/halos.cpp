#include "python/bindings/halos/halos.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/convert.hpp"
#include "python/bindings/door.hpp"
#include "python/bindings/files.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

using Widths = std::vector<std::vector<std::tuple<Index, Index, bool>>>;

std::vector<Halo> halos_of(const Widths::value_type& widths) {
    std::vector<Halo> halos;
    for (const auto& [before, after, periodic] : widths) halos.push_back({before, after, periodic});
    return halos;
}

// The shape of the array that a rank gives as the source. A tile without halos keeps its shape if it is empty.
std::vector<Index> source_shape(const HaloMove& move, Index rank) {
    return move.source_halos.empty() ? tile_shape(*move.source, rank) : array_shape(source_arrays(move), rank);
}

std::vector<HaloMove> moves_of(const nb::list& layouts, nb::handle widths, const nb::list& sources,
                               const Widths& source_widths) {
    const std::vector<HaloLayout> targets = halo_layouts(layouts, widths);
    if (sources.size() != layouts.size() || source_widths.size() != layouts.size())
        raise({Code::usage, fmt::format("{} layouts with {} sources", layouts.size(), sources.size())});
    std::vector<HaloMove> moves;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        HaloMove& move = moves.emplace_back();
        move.target = targets[i];
        if (sources[i].is_none()) continue;
        move.source = instance_of<Layout>(sources[i], "a source is a Layout or None");
        const std::vector<Halo> halos = halos_of(source_widths[i]);
        if (std::ranges::count(halos, Halo{}) < std::ssize(halos)) move.source_halos = halos;
    }
    return moves;
}

}  // namespace

std::vector<HaloLayout> halo_layouts(const nb::list& layouts, nb::handle given) {
    const auto widths = nb::cast<Widths>(given);
    if (widths.size() != layouts.size())
        raise({Code::usage, fmt::format("{} layouts with {} halos", layouts.size(), widths.size())});
    std::vector<HaloLayout> all;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
        HaloLayout& one = all.emplace_back();
        one.owned = instance_of<Layout>(layouts[i], "a halo is for a Layout or a list of them");
        one.halos = halos_of(widths[i]);
    }
    return all;
}

std::shared_ptr<PythonHalo> PythonHalo::make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                             nb::handle widths, const nb::list& sources, nb::handle source_widths) {
    std::vector<HaloMove> moves = moves_of(layouts, widths, sources, nb::cast<Widths>(source_widths));
    Call::vote(*backend);
    auto prepared = waiting([&] { return HaloExchange::prepare(moves, *backend); });
    return std::shared_ptr<PythonHalo>(
        new PythonHalo(std::move(backend), unwrap(std::move(prepared)), std::move(moves)));
}

DenseArrays PythonHalo::read(const nb::list& arrays, const nb::list& tiles) const {
    const Index rank = kept_.rank();
    if (arrays.size() != moves_.size() || tiles.size() != moves_.size())
        raise({Code::mismatch, fmt::format("{} arrays and {} tiles were given, the halo is for {}", arrays.size(),
                                           tiles.size(), moves_.size())});
    DenseArrays all;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
        const HaloMove& move = moves_[i];
        if (move.source.has_value() == tiles[i].is_none())
            raise({Code::usage, move.source ? "this halo was prepared with a source; give its tile"
                                            : "this halo is filled in place; it takes no tile"});
        const DType dtype = move.target.owned.dtype;
        Buffers& own = all.buffers.emplace_back();
        own.target = all.add(arrays[i], named("array", moves_.size(), i), Access::write, dtype,
                             array_shape(move.target, rank), rank);
        if (move.source)
            own.source =
                all.add(tiles[i], named("tile", moves_.size(), i), Access::read, dtype, source_shape(move, rank), rank);
    }
    return all;
}

std::unique_ptr<PythonRun> PythonHalo::start(const nb::list& arrays, const nb::list& tiles) {
    return kept_.start(shared_from_this(), [&] { return read(arrays, tiles); });
}

// One call of the library needs no objects for a run. Between nodes it would bind the array each time.
void PythonHalo::run(const nb::list& arrays, const nb::list& tiles) {
    if (moves_.size() == 1 && !moves_.front().source && kept_.backend().capabilities().one_exchange)
        kept_.run([&] { return read(arrays, tiles); });
    else
        start(arrays, tiles)->wait();
}

nb::list PythonHalo::places() const {
    nb::list all;
    for (const HaloMove& move : moves_) {
        std::vector<std::pair<Index, Index>> core;
        for (const Interval& side : core_of(move.target, kept_.rank())) core.emplace_back(side.begin, side.end);
        all.append(nb::make_tuple(array_shape(move.target, kept_.rank()), core));
    }
    return all;
}

void add_halos(nb::module_& module) {
    nb::class_<PythonHalo>(module, "PreparedHalo", "Halos that are ready to be filled. reshard.mpi.Halo makes them.")
        .def("start", &PythonHalo::start, "arrays"_a, "tiles"_a)
        .def("run", &PythonHalo::run, "arrays"_a, "tiles"_a)
        .def("report_failure", &PythonHalo::report_failure, "exception"_a)
        .def("places", &PythonHalo::places, nb::sig("def places(self) -> list"))
        .def_prop_ro("received_bytes", [](const PythonHalo& self) { return self.exchange().received_bytes(); })
        .def_prop_ro("staging_bytes", [](const PythonHalo& self) { return self.exchange().staging_bytes(); })
        .def("describe", [](const PythonHalo& self) { return self.exchange().describe(); });
    module.def(
        "prepare_halo",
        [](std::uintptr_t address, const nb::list& layouts, nb::handle widths, const nb::list& sources,
           nb::handle source_widths) {
            return PythonHalo::make(backend_at(address), layouts, widths, sources, source_widths);
        },
        "address"_a, "layouts"_a, "widths"_a, "sources"_a, "source_widths"_a);
    add_halo_sums(module);
}

}  // namespace reshard::python
