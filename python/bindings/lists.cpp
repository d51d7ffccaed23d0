// Many arrays in one plan, under one limit.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/core.hpp"
#include "python/bindings/lists.hpp"
#include "report/list_table.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

std::string list_text(const PlannedList& list, std::size_t width) {
    return shown(cli::list_table(list.made, list.names, list.options.machine, {.width = width, .colour = false}));
}

PlannedList planned(const std::vector<std::pair<Layout, Layout>>& ends, std::optional<std::vector<std::string>> names,
                    const nb::kwargs& given) {
    std::vector<Problem> problems;
    for (const auto& [source, target] : ends) problems.push_back({source, target});
    if (names && names->size() != problems.size())
        raise({Code::mismatch, fmt::format("{} names for {} arrays", names->size(), problems.size())});
    if (!names) names.emplace();
    for (std::size_t i = names->size(); i < problems.size(); ++i) names->push_back(fmt::format("#{}", i));
    Options options = options_of(given, nullptr);
    const MemoryPolicy memory = std::exchange(options.limits.memory, {});  // of the list, not of each array
    auto found = [&] {
        const Unlocked unlocked;
        return reshard::synthesize(problems, options, memory);
    }();
    auto made = unwrap(std::move(found));
    return {std::move(problems), std::move(made), std::move(*names), std::move(options)};
}

}  // namespace

void add_lists(nb::module_& module) {
    nb::class_<PlannedList>(
        module, "ListPlan",
        R"doc(The plans of many arrays, and the buckets in which they run, under one limit on memory.

print(plan) is the table of `reshard plan --list`. Bytes are the most that any device holds or receives.)doc")
        .def_prop_ro(
            "plans",
            [](const PlannedList& list) {
                nb::list all;
                for (std::size_t i = 0; i < list.asked.size(); ++i)
                    all.append(Planned{list.asked[i], list.made.arrays[i], list.options});
                return all;
            },
            nb::sig("def plans(self, /) -> list[Plan]"), "The plan of each array, in the order of the question.")
        .def_prop_ro(
            "names", [](const PlannedList& list) { return list.names; }, nb::sig("def names(self, /) -> list[str]"),
            "The name of each array.")
        .def_prop_ro(
            "buckets", [](const PlannedList& list) { return list.made.list().buckets; },
            nb::sig("def buckets(self, /) -> list[list[int]]"),
            "Numbers of arrays; a bucket's arrays run in one start, the buckets one after the other.")
        .def_prop_ro(
            "bucket_bytes", [](const PlannedList& list) { return list.made.verdict().bucket_bytes; },
            nb::sig("def bucket_bytes(self, /) -> list[int]"), "Bytes that a device holds while each bucket runs.")
        .def_prop_ro(
            "footprint_bytes", [](const PlannedList& list) { return list.made.verdict().footprint_bytes; },
            "The largest of the bucket_bytes.")
        .def_prop_ro(
            "floor_bytes", [](const PlannedList& list) { return list.made.floor_bytes; },
            "No order and no plans let every device do with less.")
        .def_prop_ro(
            "received_bytes", [](const PlannedList& list) { return list.made.verdict().load.received_bytes; },
            "The bytes that one device receives over all arrays.")
        .def_prop_ro(
            "sent_bytes", [](const PlannedList& list) { return list.made.verdict().load.sent_bytes; },
            "The most bytes that one device sends over all arrays.")
        .def_prop_ro(
            "lower_bound_bytes", [](const PlannedList& list) { return list.made.verdict().lower_bound_bytes; },
            "No protocol moves all arrays such that every device receives less.")
        .def_prop_ro(
            "exact", [](const PlannedList& list) { return list.made.verdict().load.received_exact; },
            "False if there were too many devices to count: then received_bytes is an upper bound.")
        .def_prop_ro(
            "seconds", [](const PlannedList& list) { return seconds_of(list.made.picoseconds); },
            "Estimated: bucket by bucket, the device that is busy longest.")
        .def_prop_ro(
            "donate", [](const PlannedList& list) { return list.made.memory().donate; }, "Sources are written.")
        .def_prop_ro(
            "fingerprint", [](const PlannedList& list) { return fingerprint(list.made.list(), list.made.memory()); },
            "64 bits that ranks compare.")
        .def("table", list_text, "width"_a = 120, "The table of `reshard plan --list`.")
        .def("__len__", [](const PlannedList& list) { return list.made.arrays.size(); })
        .def("__str__", [](const PlannedList& list) { return list_text(list, 120); })
        .def("__repr__",
             [](const PlannedList& list) {
                 return fmt::format("<ListPlan of {} arrays in {} buckets>", list.made.arrays.size(),
                                    list.made.list().buckets.size());
             })
        .def("_repr_html_", [](const PlannedList& list) { return preformatted(list_text(list, 120)); });

    const std::string signature = fmt::format(
        "def synthesize_list(problems: collections.abc.Sequence[tuple[Layout, Layout]], names: "
        "collections.abc.Sequence[str] | None = None, {}) "
        "-> ListPlan",
        options_signature());
    const std::string words =
        fmt::format(R"doc(One plan for many arrays: pairs of source and target, in buckets under one limit on memory.

footprint_bytes_max, donate and staging_bytes are of the whole list, peak_bytes_max of each array.{}
Errors: as synthesize, the array named; InfeasibleError (what is needed, the limit, and the floor).)doc",
                    options_words());
    module.def("synthesize_list", planned, nb::sig(signature.c_str()), words.c_str(), "problems"_a,
               "names"_a.none() = nb::none(), "options"_a);
}

}  // namespace reshard::python
