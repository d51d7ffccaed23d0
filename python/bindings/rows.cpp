// A move as rows of bytes: arrays of numpy over the library's own memory, without copies.
#include "reshard/model/model_rows.hpp"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/row_transport.hpp"
#include "reshard/boxes/rebuild.hpp"
#include "reshard/halo/rows.hpp"

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

template <class AnyRow, class Schedule>
nb::object rows_of(const Schedule& schedule, Index rank, const std::string& side) {
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

// The rows of a fill of halos, round by round. `widths`: for each dimension (before, after, periodic).
nb::list halo_rows_of(const Layout& layout, const std::vector<std::tuple<Index, Index, bool>>& widths,
                      std::optional<Layout> source, Index rank, const std::string& side, bool by_dimension) {
    const RowSide asked = side_of(side);
    if (rank < 0) raise({Code::mismatch, fmt::format("there is no rank {}", rank)});
    HaloMove move{{layout, {}}, std::move(source)};
    for (const auto& [before, after, periodic] : widths) move.target.halos.push_back({before, after, periodic});
    auto rounds = unwrap([&] {
        const Unlocked unlocked;
        return halo_rows(move, rank, asked, by_dimension ? HaloWay::by_dimension : HaloWay::at_once);
    }());
    nb::list all;
    for (std::vector<Row>& rows : rounds) all.append(numbers_of<Index>(std::move(rows)));
    return all;
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
    auto rows = without_gil([&] { return text ? ModelRows::make(rules, list) : ModelRows::make(rules, listed); });
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

// The names of each tensor at both ends, its layouts, and the dimensions of both that only say who owns it.
nb::list whole_moves_of(Model& model) {
    const CheckpointMapping& mapping = mapping_of(model);
    nb::list all;
    for (const WholeMove& one : unwrap(whole_moves(mapping)))
        all.append(nb::make_tuple(text_of(mapping.sources[one.source].name), text_of(mapping.targets[one.target].name),
                                  one.ends.source, one.ends.target, one.owners));
    return all;
}

// Bytes that each device receives, sends and keeps, for all arrays together.
nb::list rebuild_traffic_of(const std::vector<std::pair<Layout, Layout>>& ends, const std::vector<Index>& lost) {
    std::vector<BoxTraffic> sum;
    for (const auto& [source, target] : ends) {
        const std::vector<BoxTraffic> one = unwrap(rebuild_traffic({source, target}, lost));
        sum.resize(std::max(sum.size(), one.size()));
        for (std::size_t device = 0; device < one.size(); ++device) {
            sum[device].received_bytes = saturating_add(sum[device].received_bytes, one[device].received_bytes);
            sum[device].sent_bytes = saturating_add(sum[device].sent_bytes, one[device].sent_bytes);
            sum[device].copied_bytes = saturating_add(sum[device].copied_bytes, one[device].copied_bytes);
        }
    }
    nb::list all;
    for (const BoxTraffic& one : sum) all.append(nb::make_tuple(one.received_bytes, one.sent_bytes, one.copied_bytes));
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
        .def("rows", rows_of<Row, RowSchedule>, "rank"_a, "side"_a,
             nb::sig("def rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def("nested_rows", rows_of<NestedRow, RowSchedule>, "rank"_a, "side"_a,
             nb::sig("def nested_rows(self, rank: int, side: str) -> numpy.ndarray"))
        .def_prop_ro("ranks", &RowSchedule::rank_count)
        .def("__len__", &RowSchedule::array_count);
    module.def("halo_rows", halo_rows_of, "layout"_a, "widths"_a, "source"_a.none(), "rank"_a, "side"_a,
               "by_dimension"_a);
    module.def("rebuild_traffic", rebuild_traffic_of, "ends"_a, "lost"_a,
               nb::sig("def rebuild_traffic(ends: collections.abc.Sequence[tuple[Layout, Layout]], lost: "
                       "collections.abc.Sequence[int]) -> "
                       "list[tuple[int, int, int]]"));
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
        .def("whole_moves", whole_moves_of,
             nb::sig("def whole_moves(self, /) -> list[tuple[str, str, Layout, Layout, int]]"))
        .def_prop_ro("ranks", [](const Model& model) { return model.rows.rank_count(); })
        .def("__len__", [](const Model& model) { return model.rows.array_count(); });
}

}  // namespace reshard::python
