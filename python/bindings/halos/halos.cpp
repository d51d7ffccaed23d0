#include "python/bindings/halos/halos.hpp"

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

std::vector<HaloMove> moves_of(const nb::list& layouts, nb::handle widths, const nb::list& sources) {
    const std::vector<HaloLayout> targets = halo_layouts(layouts, widths);
    if (sources.size() != layouts.size())
        raise({Code::usage, fmt::format("{} layouts with {} sources", layouts.size(), sources.size())});
    std::vector<HaloMove> moves;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        HaloMove& move = moves.emplace_back();
        move.target = targets[i];
        if (!sources[i].is_none()) move.source = instance_of<Layout>(sources[i], "a source is a Layout or None");
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
        for (const auto& [before, after, periodic] : widths[i]) one.halos.push_back({before, after, periodic});
    }
    return all;
}

std::string named(const char* what, std::size_t count, std::size_t number) {
    return count == 1 ? std::string(what) : fmt::format("{}[{}]", what, number);
}

Array dense_array(nb::handle object, const std::string& name, Access access, DType dtype,
                  const std::vector<Index>& shape, Index rank) {
    Array array = array_of(object, name.c_str(), access);
    expect_host(array, name.c_str());
    expect_tile(array, name.c_str(), dtype, shape, rank);
    if (!array.row_major())
        raise({Code::mismatch, fmt::format("`{}` is not row-major; a dense array in C order is wanted", name)});
    return array;
}

std::shared_ptr<PythonHalo> PythonHalo::make(std::shared_ptr<Backend> backend, const nb::list& layouts,
                                             nb::handle widths, const nb::list& sources) {
    std::vector<HaloMove> moves = moves_of(layouts, widths, sources);
    Call::vote(*backend);
    auto prepared = waiting([&] { return HaloExchange::prepare(moves, *backend); });
    return std::shared_ptr<PythonHalo>(
        new PythonHalo(std::move(backend), unwrap(std::move(prepared)), std::move(moves)));
}

PythonHalo::~PythonHalo() {
    if (!home_.here()) {  // the parent's locks may be held for ever
        leave(bound_);
        leave(exchange_);
        leave(backend_);
        return;
    }
    Turn::drop(*backend_, [&] {
        bound_.reset();
        const HaloExchange dropped = std::move(exchange_);
    });
}

std::unique_ptr<PythonRun> PythonHalo::start(const nb::list& arrays, const nb::list& tiles) {
    expect_home(home_, "halos");
    const Turn turn(*backend_);
    const Index rank = backend_->rank();
    if (arrays.size() != moves_.size() || tiles.size() != moves_.size())
        raise({Code::mismatch, fmt::format("{} arrays and {} tiles were given, the halo is for {}", arrays.size(),
                                           tiles.size(), moves_.size())});
    std::vector<Array> held;
    std::vector<Buffers> buffers;
    std::vector<const std::byte*> addresses;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
        const HaloMove& move = moves_[i];
        if (move.source.has_value() == tiles[i].is_none())
            raise({Code::usage, move.source ? "this halo was prepared with a source; give its tile"
                                            : "this halo is filled in place; it takes no tile"});
        const DType dtype = move.target.owned.dtype;
        held.push_back(dense_array(arrays[i], named("array", moves_.size(), i), Access::write, dtype,
                                   array_shape(move.target, rank), rank));
        Buffers& own = buffers.emplace_back();
        own.target = {held.back().bytes, held.back().size_bytes()};
        if (move.source) {
            held.push_back(dense_array(tiles[i], named("tile", moves_.size(), i), Access::read, dtype,
                                       tile_shape(*move.source, rank), rank));
            own.source = {held.back().bytes, held.back().size_bytes()};
        }
        addresses.push_back(own.target.data());
        addresses.push_back(own.source.data());
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

void PythonHalo::report_failure(nb::handle exception) {
    if (home_.here()) exchange_.report_failure(error_of(exception));
}

nb::list PythonHalo::places() const {
    nb::list all;
    for (const HaloMove& move : moves_) {
        std::vector<std::pair<Index, Index>> core;
        for (const Interval& side : core_of(move.target, backend_->rank())) core.emplace_back(side.begin, side.end);
        all.append(nb::make_tuple(array_shape(move.target, backend_->rank()), core));
    }
    return all;
}

void add_halos(nb::module_& module) {
    nb::class_<PythonHalo>(module, "PreparedHalo", "Halos that are ready to be filled. reshard.mpi.Halo makes them.")
        .def("start", &PythonHalo::start, "arrays"_a, "tiles"_a)
        .def("report_failure", &PythonHalo::report_failure, "exception"_a)
        .def("places", &PythonHalo::places, nb::sig("def places(self) -> list"))
        .def_prop_ro("received_bytes", [](const PythonHalo& self) { return self.exchange().received_bytes(); })
        .def_prop_ro("staging_bytes", [](const PythonHalo& self) { return self.exchange().staging_bytes(); })
        .def("describe", [](const PythonHalo& self) { return self.exchange().describe(); });
    module.def(
        "prepare_halo",
        [](std::uintptr_t address, const nb::list& layouts, nb::handle widths, const nb::list& sources) {
            return PythonHalo::make(backend_at(address), layouts, widths, sources);
        },
        "address"_a, "layouts"_a, "widths"_a, "sources"_a);
    add_halo_sums(module);
}

}  // namespace reshard::python
