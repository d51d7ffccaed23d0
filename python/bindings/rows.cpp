// A move as rows of bytes: arrays of numpy over the library's own memory, without copies.
#include "reshard/model/model_rows.hpp"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"

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
        const Unlocked unlocked;
        return RowSchedule::make(std::span<const Problem>(problems));
    }();
    return unwrap(std::move(made));
}

template <class Schedule>
nb::object rows_of(const Schedule& schedule, Index rank, const std::string& side) {
    const RowSide asked = side_of(side);
    if (rank < 0) raise({Code::mismatch, fmt::format("there is no rank {}", rank)});
    auto rows = [&] {
        const Unlocked unlocked;
        return schedule.rows(rank, asked);
    }();
    return numbers_of(std::move(rows));
}

// The moves that rules make from a list, and their rows. The mapping tensor by tensor is made when it is asked for.
struct Model {
    std::string rules;
    std::string list;                   // text, or
    std::vector<ListedTensor> tensors;  // tensors
    ModelRows rows;
    std::optional<CheckpointMapping> mapping = {};
};

std::vector<ListedTensor> tensors_of(nb::handle tensors) {
    std::vector<ListedTensor> all;
    for (nb::handle one : tensors) {
        const char* const wanted = "a tensor is its name, its dtype and its shape";
        if (nb::len(one) != 3) throw nb::type_error(wanted);
        all.push_back(
            {value_of<std::string>(one[0], wanted), dtype_of(one[1]), value_of<std::vector<Index>>(one[2], wanted)});
    }
    return all;
}

// `tensors`: lines of text, or triples of name, dtype and shape.
Model model_of(const std::string& rules, nb::handle tensors) {
    const bool text = nb::isinstance<nb::str>(tensors);
    std::string list = text ? std::string(string_of(tensors)) : std::string();
    std::vector<ListedTensor> listed = text ? std::vector<ListedTensor>() : tensors_of(tensors);
    auto rows = [&] {
        const Unlocked unlocked;
        return text ? ModelRows::make(rules, list) : ModelRows::make(rules, listed);
    }();
    return {rules, std::move(list), std::move(listed), unwrap(std::move(rows))};
}

const CheckpointMapping& mapping_of(Model& model) {
    if (model.mapping) return *model.mapping;
    auto made = [&]() -> Result<CheckpointMapping> {
        const Unlocked unlocked;
        if (model.list.empty()) return apply_rules(model.rules, model.tensors);
        return parse_tensors(model.list).and_then([&](const auto& tensors) {
            return apply_rules(model.rules, tensors);
        });
    }();
    CheckpointMapping mapping = unwrap(std::move(made));
    if (!model.mapping) model.mapping = std::move(mapping);  // another thread may have been faster
    return *model.mapping;
}

nb::dict layouts_of(const std::vector<ShardedTensor>& tensors) {
    nb::dict all;
    for (const ShardedTensor& tensor : tensors) all[text_of(tensor.name)] = *tensor.layout;
    return all;
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
        .def("rows", rows_of<RowSchedule>, "rank"_a, "side"_a,
             nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def_prop_ro("ranks", &RowSchedule::rank_count)
        .def("__len__", &RowSchedule::array_count);
    nb::class_<Model>(module, "Model", "The moves of a model's tensors by rules. reshard.CheckpointMapping makes them.")
        .def(
            "__init__",
            [](Model* self, const std::string& rules, nb::handle tensors) {
                new (self) Model(model_of(rules, tensors));
            },
            "rules"_a, "tensors"_a)
        .def_prop_ro(
            "sources", [](Model& model) { return layouts_of(mapping_of(model).sources); },
            nb::sig("def sources(self, /) -> dict[str, Layout]"))
        .def_prop_ro(
            "targets", [](Model& model) { return layouts_of(mapping_of(model).targets); },
            nb::sig("def targets(self, /) -> dict[str, Layout]"))
        .def_prop_ro(
            "ends",
            [](const Model& model) {
                nb::list all;
                for (std::size_t array = 0; array < model.rows.array_count(); ++array) {
                    const auto [source, target] = model.rows.names(array);
                    all.append(nb::make_tuple(text_of(source), text_of(target)));
                }
                return all;
            },
            nb::sig("def ends(self, /) -> list[tuple[str, str]]"))
        .def(
            "rows",
            [](const Model& model, Index rank, const std::string& side) { return rows_of(model.rows, rank, side); },
            "rank"_a, "side"_a, nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def_prop_ro("ranks", [](const Model& model) { return model.rows.rank_count(); })
        .def("__len__", [](const Model& model) { return model.rows.array_count(); });
}

}  // namespace reshard::python
