// A move as rows of bytes: arrays of numpy over the library's own memory, without copies.
#include "reshard/model/rules.hpp"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/row_numbers.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

static_assert(sizeof(Row) == 8 * sizeof(Index) && sizeof(NestedRow) == 17 * sizeof(Index),
              "rows are integers, as their dtypes say");

RowSide side_of(const std::string& side) {
    if (side == "send") return RowSide::send;
    if (side == "receive") return RowSide::receive;
    raise({Code::usage, fmt::format("a side is 'send' or 'receive', not '{}'", side)});
}

// The storages of the arrays of a list, from a text for each end; none if no text is given.
Result<std::vector<RankStorages>> storages_of(const std::vector<Problem>& problems,
                                              const std::vector<std::pair<std::string, std::string>>& texts) {
    std::vector<RankStorages> all;
    for (std::size_t i = 0; i < std::min(problems.size(), texts.size()); ++i) {
        auto source = parse_storages(problems[i].source, texts[i].first);
        if (!source) return tl::unexpected(source.error());
        auto target = parse_storages(problems[i].target, texts[i].second);
        if (!target) return tl::unexpected(target.error());
        all.push_back({*std::move(source), *std::move(target)});
    }
    return all;
}

RowSchedule schedule_of(const std::vector<std::pair<Layout, Layout>>& ends,
                        const std::vector<std::pair<std::string, std::string>>& storages) {
    std::vector<Problem> problems;
    for (const auto& [source, target] : ends) problems.push_back({source, target});
    auto made = [&]() -> Result<RowSchedule> {
        const Unlocked unlocked;
        if (storages.empty()) return RowSchedule::make(std::span<const Problem>(problems));
        auto given = storages_of(problems, storages);
        if (!given) return tl::unexpected(given.error());
        return RowSchedule::make(problems, *given);
    }();
    return unwrap(std::move(made));
}

template <class AnyRow>
nb::object rows_of(const RowSchedule& schedule, Index rank, const std::string& side) {
    const RowSide asked = side_of(side);
    if (rank < 0) raise({Code::mismatch, fmt::format("there is no rank {}", rank)});
    auto rows = [&] {
        const Unlocked unlocked;
        if constexpr (std::is_same_v<AnyRow, Row>)
            return schedule.rows(rank, asked);
        else
            return schedule.nested_rows(rank, asked);
    }();
    return numbers_of<Index>(std::move(rows));
}

// The moves that rules make from a list, and their rows.
struct Model {
    CheckpointMapping moves;
    RowSchedule rows;
};

// Lines of text, or triples of name, dtype and shape.
std::vector<ListedTensor> tensors_of(nb::handle tensors) {
    if (nb::isinstance<nb::str>(tensors)) return unwrap(parse_tensors(string_of(tensors)));
    std::vector<ListedTensor> all;
    for (nb::handle one : tensors) {
        const char* const wanted = "a tensor is its name, its dtype and its shape";
        if (nb::len(one) != 3) throw nb::type_error(wanted);
        all.push_back(
            {value_of<std::string>(one[0], wanted), dtype_of(one[1]), value_of<std::vector<Index>>(one[2], wanted)});
    }
    return all;
}

Model model_of(const std::string& rules, nb::handle tensors) {
    const std::vector<ListedTensor> listed = tensors_of(tensors);
    auto made = [&]() -> Result<Model> {
        const Unlocked unlocked;
        auto moves = apply_rules(rules, listed);
        if (!moves) return tl::unexpected(moves.error());
        auto rows = RowSchedule::make(std::span<const PartProblem>(moves->moves));
        if (!rows) return tl::unexpected(rows.error());
        return Model{std::move(*moves), std::move(*rows)};
    }();
    return unwrap(std::move(made));
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
            [](RowSchedule* self, const std::vector<std::pair<Layout, Layout>>& ends,
               const std::vector<std::pair<std::string, std::string>>& storages) {
                new (self) RowSchedule(schedule_of(ends, storages));
            },
            "problems"_a, "storages"_a)
        .def("rows", rows_of<Row>, "rank"_a, "side"_a, nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def("nested_rows", rows_of<NestedRow>, "rank"_a, "side"_a,
             nb::sig("def nested_rows(self, rank: int, side: str) -> numpy.ndarray"))
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
            "sources", [](const Model& model) { return layouts_of(model.moves.sources); },
            nb::sig("def sources(self, /) -> dict[str, Layout]"))
        .def_prop_ro(
            "targets", [](const Model& model) { return layouts_of(model.moves.targets); },
            nb::sig("def targets(self, /) -> dict[str, Layout]"))
        .def_prop_ro(
            "ends",
            [](const Model& model) {
                nb::list all;
                for (const auto& [source, target] : model.moves.ends)
                    all.append(nb::make_tuple(text_of(model.moves.sources[source].name),
                                              text_of(model.moves.targets[target].name)));
                return all;
            },
            nb::sig("def ends(self, /) -> list[tuple[str, str]]"))
        .def(
            "rows",
            [](const Model& model, Index rank, const std::string& side) {
                return rows_of<Row>(model.rows, rank, side);
            },
            "rank"_a, "side"_a, nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def(
            "nested_rows",
            [](const Model& model, Index rank, const std::string& side) {
                return rows_of<NestedRow>(model.rows, rank, side);
            },
            "rank"_a, "side"_a, nb::sig("def nested_rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def_prop_ro("ranks", [](const Model& model) { return model.rows.rank_count(); })
        .def("__len__", [](const Model& model) { return model.rows.array_count(); });
}

}  // namespace reshard::python
