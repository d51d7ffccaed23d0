// A move as rows of bytes: arrays of numpy over the library's own memory, without copies.
#include "reshard/rows.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/core.hpp"
#include "python/bindings/errors.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

static_assert(sizeof(Row) == 8 * sizeof(Index), "a row is eight integers, as its dtype says");

RowSide side_of(const std::string& side) {
    if (side == "send") return RowSide::send;
    if (side == "receive") return RowSide::receive;
    raise({Code::usage, fmt::format("a side is 'send' or 'receive', not '{}'", side)});
}

// n rows as an array of n x 8 numbers, which reshard.rows shows as a structured one.
nb::object numbers_of(std::vector<Row> rows) {
    auto* const kept = new std::vector<Row>(std::move(rows));
    const nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<std::vector<Row>*>(held); });
    const std::size_t shape[] = {kept->size(), 8};
    return nb::cast(nb::ndarray<nb::numpy, Index>(kept->data(), 2, shape, owner));
}

RowSchedule schedule_of(const std::vector<std::pair<Layout, Layout>>& ends) {
    std::vector<Problem> problems;
    for (const auto& [source, target] : ends) problems.push_back({source, target});
    auto made = [&] {
        const nb::gil_scoped_release unlocked;
        return RowSchedule::make(std::span<const Problem>(problems));
    }();
    return unwrap(std::move(made));
}

nb::object rows_of(const RowSchedule& schedule, Index rank, const std::string& side) {
    const RowSide asked = side_of(side);
    if (rank < 0) raise({Code::mismatch, fmt::format("there is no rank {}", rank)});
    auto rows = [&] {
        const nb::gil_scoped_release unlocked;
        return schedule.rows(rank, asked);
    }();
    return numbers_of(std::move(rows));
}

}  // namespace

void add_rows(nb::module_& module) {
    nb::class_<RowSchedule>(module, "Rows",
                            "The rows of one or many arrays, on any rank. reshard.RowSchedule makes them.")
        .def(
            "__init__",
            [](RowSchedule* self, const std::vector<std::pair<Layout, Layout>>& ends) {
                new (self) RowSchedule(schedule_of(ends));
            },
            "problems"_a)
        .def("rows", rows_of, "rank"_a, "side"_a, nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def_prop_ro("ranks", &RowSchedule::rank_count)
        .def("__len__", &RowSchedule::array_count);
}

}  // namespace reshard::python
