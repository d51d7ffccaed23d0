// Tile programs: plans as operations on the local tile.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/core.hpp"
#include "python/bindings/plans.hpp"
#include "reshard/emit/write.hpp"
#include "reshard/planner/view.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

/// An operation, and the mesh that names its digits.
struct NamedOperation {
    Operation operation;
    Mesh mesh;
};

template <class Numbers>
nb::tuple as_tuple(const Numbers& numbers) {
    nb::list all;
    for (const auto number : numbers) all.append(number);
    return nb::tuple(all);
}

nb::object axes_of(const Mesh& mesh, const AtomList& digits) {
    const auto axes = whole_axes(mesh, digits);
    if (!axes) return nb::none();
    nb::list all;
    for (const std::string& axis : *axes) all.append(text_of(axis));
    return nb::tuple(all);
}

bool is_placed(const Operation& operation) {
    return operation.kind == OperationKind::slice || operation.kind == OperationKind::update_slice;
}

nb::object group_axes(const NamedOperation& named) {
    if (named.operation.groups.empty() || named.operation.digits.empty()) return nb::none();
    return axes_of(named.mesh, named.operation.digits[0]);
}

nb::object start_axes(const NamedOperation& named) {
    if (!is_placed(named.operation) || named.operation.digits.empty()) return nb::none();
    nb::list all;
    for (const AtomList& digits : named.operation.digits) all.append(axes_of(named.mesh, digits));
    return all;
}

nb::object reduction_of(const NamedOperation& named) {
    switch (named.operation.combine) {
        case Combine::copy:
            return nb::none();
        case Combine::sum:
            return text_of("sum");
        case Combine::max:
            return text_of("max");
        case Combine::min:
            return text_of("min");
        case Combine::prod:
            break;
    }
    return text_of("prod");
}

template <class Value>
auto field(Value Operation::*member) {
    return [member](const NamedOperation& named) { return named.operation.*member; };
}

// The order that undoes a permutation. pre: it names each dimension once.
std::vector<Index> inverse(const std::vector<Index>& order) {
    std::vector<Index> back(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) back[static_cast<std::size_t>(order[i])] = static_cast<Index>(i);
    return back;
}

// The program that begins at the source before its transposition.
Result<TileProgram> portable_from(const Planned& planned, const std::vector<Index>& permute) {
    Problem asked = planned.asked;
    if (auto known = permuted(asked.source, permute); !known) return tl::unexpected(known.error());
    asked.source = *permuted(asked.source, inverse(permute));
    return portable(planned.made.plan(), asked, permute);
}

void add_operation(nb::module_& module) {
    nb::class_<NamedOperation>(module, "Operation", R"doc(One operation on the local tile: what all devices do at once.

Every operation has all fields; those that its kind does not use are empty or None. Tiles are dense, row-major and of one
shape on all devices. Positions are row-major positions in the mesh of TileProgram.source.

reshape: x.reshape(output_shape). transpose: x.transpose(permutation). reorder: runs of
dimension 1, one after another. slice: the block of output_shape that begins at
starts[position]. update_slice: the input becomes the block at starts[position] of neutral elements. mask: positions not in
`keeps` get neutral elements. scale: x * times / over. cast: x as elements of `dtype`. reduce: dimension 0 is combined. all_gather: dimension 0 becomes the
members' tiles one behind the other. all_to_all: dimension 0 is one block for each member; block j goes to member j, and
member j's takes its place. reduce_scatter: member j gets the sum of all members' blocks j. all_reduce: the members' tiles
combined. permute: each pair's source sends its tile to the target.)doc")
        .def_prop_ro(
            "kind", [](const NamedOperation& named) { return text_of(name(named.operation.kind)); },
            nb::sig("def kind(self, /) -> str"),
            "reshape, transpose, reorder, slice, update_slice, mask, scale, cast, reduce, all_gather, all_to_all, "
            "reduce_scatter, "
            "all_reduce or permute.")
        .def_prop_ro(
            "input_shape", [](const NamedOperation& named) { return tuple_of(named.operation.input); },
            nb::sig("def input_shape(self, /) -> tuple[int, ...]"), "The shape of the tile before, in elements.")
        .def_prop_ro(
            "output_shape", [](const NamedOperation& named) { return tuple_of(named.operation.output); },
            nb::sig("def output_shape(self, /) -> tuple[int, ...]"), "The shape of the tile after.")
        .def_prop_ro(
            "permutation", [](const NamedOperation& named) { return as_tuple(named.operation.permutation); },
            nb::sig("def permutation(self, /) -> tuple[int, ...]"), "transpose: numpy's axes.")
        .def_prop_ro(
            "runs",
            [](const NamedOperation& named) {
                std::vector<std::pair<Index, Index>> runs;
                for (const Interval& run : named.operation.runs) runs.emplace_back(run.begin, run.end);
                return runs;
            },
            nb::sig("def runs(self, /) -> list[tuple[int, int]]"), "reorder: (begin, end) of runs of dimension 1.")
        .def_prop_ro("starts", field(&Operation::starts), nb::sig("def starts(self, /) -> list[list[int]]"),
                     "slice, update_slice: the begin of the block for each position.")
        .def_prop_ro("groups", field(&Operation::groups), nb::sig("def groups(self, /) -> list[list[int]]"),
                     "Groups of a collective: positions in the order of the blocks. Each position is in one group.")
        .def_prop_ro("axes", group_axes, nb::sig("def axes(self, /) -> tuple[str, ...] | None"),
                     "The same as whole axes of the mesh, major to minor; None where parts of axes are needed.")
        .def_prop_ro(
            "start_axes", start_axes, nb::sig("def start_axes(self, /) -> list[tuple[str, ...] | None] | None"),
            "slice, update_slice: per dimension the axes whose index, times the smaller extent, is the start; () "
            "where that is 0, None where only `starts` says it.")
        .def_prop_ro(
            "pairs",
            [](const NamedOperation& named) {
                std::vector<std::pair<Index, Index>> pairs;
                for (const SourceTargetPair& pair : named.operation.pairs) pairs.emplace_back(pair.source, pair.target);
                return pairs;
            },
            "permute: positions (source, target), one of each for every position.")
        .def_prop_ro("keeps", field(&Operation::keeps), nb::sig("def keeps(self, /) -> list[int]"),
                     "mask: the positions that keep their tile.")
        .def_prop_ro(
            "times", [](const NamedOperation& named) { return named.operation.factor.times; }, "scale: numerator.")
        .def_prop_ro(
            "over", [](const NamedOperation& named) { return named.operation.factor.over; }, "scale: denominator.")
        .def_prop_ro(
            "dtype",
            [](const NamedOperation& named) -> nb::object {
                if (named.operation.kind != OperationKind::cast) return nb::none();
                return text_of(name(named.operation.dtype));
            },
            nb::sig("def dtype(self, /) -> str | None"), "cast: the element type after it, as Layout.dtype.")
        .def_prop_ro("reduction", reduction_of, nb::sig("def reduction(self, /) -> str | None"),
                     "sum, max, min or prod: how a reduction combines, or whose neutral element fills.")
        .def_prop_ro(
            "received_elements", [](const NamedOperation& named) { return received_elements(named.operation); },
            "The most bytes that a device receives from others.")
        .def("__repr__", [](const NamedOperation& named) { return "<Operation " + format(named.operation) + ">"; });
}

}  // namespace

void add_portable(nb::module_& module) {
    add_operation(module);
    nb::class_<TileProgram>(module, "TileProgram", R"doc(A plan as operations on the local tile. portable makes them.

Every device runs all operations in order, from its tile of `source` to its tile of `target`.)doc")
        .def_prop_ro(
            "source", [](const TileProgram& program) { return program.source; }, "The layout of the array now.")
        .def_prop_ro(
            "target", [](const TileProgram& program) { return program.target; }, "The wanted layout.")
        .def_prop_ro(
            "operations",
            [](const TileProgram& program) {
                std::vector<NamedOperation> all;
                for (const Operation& operation : program.operations) all.push_back({operation, program.source.mesh});
                return all;
            },
            nb::sig("def operations(self, /) -> list[Operation]"), "In order.")
        .def_prop_ro(
            "text", [](const TileProgram& program) { return format(program); }, "One line for each operation.")
        .def(
            "write",
            [](const TileProgram& program, const std::string& framework) {
                return unwrap(write(program, unwrap(parse_framework(framework))));
            },
            "framework"_a,
            R"doc(The program as text that runs: what `reshard emit --to` prints.

framework: jax, stablehlo or torch. Errors: InputError (no such framework), UnsupportedError (the ends list the devices
in two orders, or use parts of axes that no mesh has as axes).)doc")
        .def("_jax_function", [](const TileProgram& program) { return jax_function(program); })
        .def("__len__", [](const TileProgram& program) { return program.operations.size(); })
        .def("__str__", [](const TileProgram& program) { return shown(format(program)); })
        .def("__repr__", [](const TileProgram& program) {
            return fmt::format("<TileProgram of {} operations>", program.operations.size());
        });
    module.def(
        "portable",
        [](const Planned& planned, const std::vector<Index>& permute) {
            auto made = [&]() -> Result<TileProgram> {
                const Unlocked unlocked;
                return portable_from(planned, permute);
            }();
            return unwrap(std::move(made));
        },
        "plan"_a, "permute"_a = nb::tuple(),
        nb::sig("def portable(plan: Plan, permute: Sequence[int] = ()) -> TileProgram"),
        R"doc(The plan as operations on the local tile, each of which every array framework has.

plan: of synthesize(..., vocabulary="collectives"). One collective for each step that communicates. The program begins and
ends at the shapes that were asked about, also of a reshape.
permute: the plan's source is source.permuted(permute), and the program begins at the tile of `source`. Dimension i of the
target is then dimension permute[i] of the source.
Errors: UnsupportedError (an exchange, or shards that do not divide).)doc");
}

}  // namespace reshard::python
