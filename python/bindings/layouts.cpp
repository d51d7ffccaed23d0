// Mesh, Layout and Machine, and everything that reads and writes them.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "reshard/notations/notation.hpp"
#include "reshard/planner/view.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

constexpr Index listed_max = Index{1} << 22;  // devices: numbers of Python take ten times the memory

Mesh make_mesh(nb::object axes, const std::optional<std::vector<Index>>& devices) {
    Mesh mesh;
    if (nb::isinstance<nb::dict>(axes)) axes = axes.attr("items")();
    for (nb::handle pair : axes) {
        const char* const wanted = "an axis of a mesh is its name, a str, and its size, an int";
        auto [name, size] = value_of<std::pair<std::string, Index>>(pair, wanted);
        mesh.axes.push_back({std::move(name), size});
    }
    if (devices) mesh.devices = DeviceList(*devices);
    unwrap(validate(mesh));
    return mesh;
}

// One entry of a PartitionSpec: an axis, axes from major to minor, or None.
PartitionEntry entry_of(nb::handle entry) {
    PartitionEntry axes;
    if (entry.is_none()) return axes;
    const char* const wanted = "an entry of a spec is None, the name of an axis, or a tuple of names";
    if (nb::isinstance<nb::str>(entry)) {
        axes.axes.push_back(string_of(entry));
    } else {
        if (!nb::isinstance<nb::iterable>(entry)) throw nb::type_error(wanted);
        for (nb::handle axis : entry) axes.axes.push_back(value_of<std::string>(axis, wanted));
    }
    return axes;
}

// The text of a cut, as parse_layout reads it behind the axes of a dimension.
std::string cut_text(nb::handle cut) {
    const char* const wanted =
        "an entry of cuts is None, 'balanced', the indices of a block, or a list of the indices of each shard";
    if (nb::isinstance<nb::str>(cut)) return "[" + string_of(cut) + "]";
    if (!nb::isinstance<nb::iterable>(cut)) return fmt::format("/{}", value_of<Index>(cut, wanted));
    std::string text;
    for (nb::handle share : cut) text += fmt::format("{}{}", text.empty() ? "" : ",", value_of<Index>(share, wanted));
    return "[" + text + "]";
}

// Cuts dimension i of a layout; the entry of the spec names its axes.
void cut_dim(Layout& layout, std::size_t i, const P& spec, nb::handle cut) {
    if (cut.is_none()) return;
    if (i >= layout.dims.size())
        raise({Code::layout, fmt::format("cuts has more entries than the {} dimensions", layout.dims.size())});
    if (i >= spec.size() || spec[i].axes.empty())
        raise({Code::layout, fmt::format("dimension {} has a cut and no axes", i)});
    const std::string text = fmt::format("{}[{}@({}){}]", name(layout.dtype), layout.dims[i].extent,
                                         fmt::join(spec[i].axes, ","), cut_text(cut));
    layout.dims[i] = unwrap(parse_layout(layout.mesh, text)).dims.front();
}

Layout layout_from_names(nb::handle mesh, nb::handle dtype, const std::vector<Index>& extents, nb::handle spec,
                         const std::vector<std::string>& unreduced, const std::string& reduction, nb::handle cuts) {
    P entries;
    for (nb::handle entry : spec) entries.push_back(entry_of(entry));
    Layout layout = unwrap(reshard::make_layout(mesh_of(mesh), dtype_of(dtype), extents, entries, unreduced));
    std::size_t dim = 0;
    for (nb::handle cut : cuts) cut_dim(layout, dim++, entries, cut);
    layout.reduction = unwrap(parse_reduction(reduction));
    unwrap(validate(layout));
    return layout;
}

// The parts that other notations leave open: the dtype, the shape, and in some the mesh.
NotationContext setting_of(Notation notation, nb::handle mesh, const std::optional<std::string>& array) {
    NotationContext setting;
    if (array) {
        setting = unwrap(parse_array(*array));
    } else if (notation != Notation::jax) {
        raise({Code::usage,
               fmt::format("{} does not say the element type and the shape: give array='f32[8,4]'", name(notation))});
    }
    Mesh known;
    if (nb::try_cast(mesh, known))
        setting.mesh = known;
    else if (!mesh.is_none())
        setting.mesh = unwrap(parse_mesh(notation, value_of<std::string>(mesh, "a mesh is a Mesh or its text")));
    return setting;
}

Layout read_layout(nb::handle mesh, const std::string& text, const std::string& notation,
                   const std::optional<std::string>& array) {
    const Notation known = unwrap(parse_notation(notation));
    if (known == Notation::jax && !array) return unwrap(parse_layout(mesh_of(mesh), text));
    return unwrap(parse_layout(known, setting_of(known, mesh, array), text));
}

std::string written(const Layout& layout, const std::string& notation) {
    return unwrap(format(unwrap(parse_notation(notation)), layout));
}

// torch's Shard(0) prints as the notation `dtensor` reads it.
Layout layout_from_placements(nb::handle mesh, nb::handle dtype, std::vector<Index> extents, nb::handle placements) {
    std::string text = "(";
    for (nb::handle placement : placements) text += string_of(nb::str(placement)) + ",";
    return unwrap(parse_layout(Notation::dtensor, {mesh_of(mesh), dtype_of(dtype), std::move(extents)}, text + ")"));
}

nb::tuple indices_of(const Layout& layout, Index rank) {
    nb::list dims;
    for (const Side& side : tile(layout, rank)) {
        nb::list intervals;
        for (const Interval& one : side.intervals) intervals.append(nb::make_tuple(one.begin, one.end));
        dims.append(nb::tuple(intervals));
    }
    return nb::tuple(dims);
}

template <class T>
nb::object equal(const T& self, nb::handle other) {
    T value;
    if (!nb::try_cast(other, value)) return nb::borrow(nb::handle(Py_NotImplemented));
    return nb::cast(self == value);
}

void add_mesh(nb::module_& module) {
    nb::class_<Mesh>(module, "Mesh",
                     R"doc(Named axes with sizes over a list of devices, row-major, the first axis most major.

Mesh({"x": 2, "y": 3}) has six devices; device i is rank i of the communicator. `devices` lists another order, or other
devices. Errors: InputError (an empty or repeated name, a size below 1, a device twice).)doc")
        .def(
            "__init__",
            [](Mesh* self, nb::object axes, const std::optional<std::vector<Index>>& devices) {
                new (self) Mesh(make_mesh(std::move(axes), devices));
            },
            "axes"_a, "devices"_a = nb::none(),
            nb::sig("def __init__(self, axes: dict[str, int] | collections.abc.Iterable[tuple[str, int]], "
                    "devices: collections.abc.Sequence[int] | None = None) -> None"))
        .def_prop_ro(
            "axis_names",
            [](const Mesh& mesh) {
                nb::list names;
                for (const Axis& axis : mesh.axes) names.append(axis.name);
                return nb::tuple(names);
            },
            nb::sig("def axis_names(self, /) -> tuple[str, ...]"), "Names, major to minor.")
        .def_prop_ro(
            "shape",
            [](const Mesh& mesh) {
                nb::dict sizes;
                for (const Axis& axis : mesh.axes) sizes[text_of(axis.name)] = axis.size;
                return sizes;
            },
            nb::sig("def shape(self, /) -> dict[str, int]"), "Devices along each axis.")
        .def_prop_ro(
            "size", [](const Mesh& mesh) { return device_count(mesh); }, "Devices in all.")
        .def_prop_ro(
            "devices",
            [](const Mesh& mesh) {
                if (device_count(mesh) > listed_max)
                    raise({Code::unsupported, fmt::format("{} devices are too many for a tuple, which has {} at most",
                                                          device_count(mesh), listed_max)});
                std::vector<Index> all;
                for (Index i = 0; i < device_count(mesh); ++i) all.push_back(device_at(mesh, i));
                return tuple_of(all);
            },
            nb::sig("def devices(self, /) -> tuple[int, ...]"), R"doc(The device at each position, row-major.

Errors: UnsupportedError (more than 4194304 of them).)doc")
        .def("__str__", [](const Mesh& mesh) { return format(mesh); })
        .def("__repr__", [](const Mesh& mesh) { return fmt::format("parse_mesh('{}')", format(mesh)); })
        .def("__eq__", equal<Mesh>, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", [](const Mesh& mesh) { return hash_of(format(mesh)); })
        .def("__getstate__", [](const Mesh& mesh) { return format(mesh); })
        .def("__setstate__", [](Mesh& mesh, const std::string& text) { new (&mesh) Mesh(unwrap(parse_mesh(text))); });
    module.def(
        "parse_mesh",
        [](const std::string& text, const std::string& notation) {
            return unwrap(parse_mesh(unwrap(parse_notation(notation)), text));
        },
        "text"_a, "notation"_a = "jax",
        R"doc(A mesh from text: 'x=2,y=3', or 'x=2,y=3[0,2,4,1,3,5]' over other devices or in another order.

`notation`: jax, spec, sdy, hlo or dtensor. Errors: InputError, with a caret under the first wrong place.)doc");
}

void add_layout(nb::module_& module) {
    nb::class_<Layout>(module, "Layout",
                       R"doc(The type of a distributed array: dtype, shape, mesh, and which axes cut which dimension.

Layout("x=2,y=3", "f32", (12288, 4096), ("x", None)) is what JAX writes as NamedSharding(mesh, P("x", None)): per
dimension None, an axis (a part of one: "x:(1)2"), or several axes, major to minor; missing entries are None. Axes in
`unreduced` hold summands that `reduction` (sum, max, min, prod, avg) combines. `cuts`, per dimension: None (ceil-div, as
JAX), 'balanced' (as numpy.array_split), the indices of a block (block-cyclic), or the indices of each shard. `dtype`: 'f32', 'bf16', 'float32', or
what numpy.dtype takes. `shape`: elements. parse_layout reads the same as text, and cuts at any indices.
Values: equal ones are equal, hash the same, and pickle. Errors: InputError; UnsupportedError (sums of f8).)doc")
        .def(
            "__init__",
            [](Layout* self, nb::handle mesh, nb::handle dtype, const std::vector<Index>& extents, nb::handle spec,
               const std::vector<std::string>& unreduced, const std::string& reduction, nb::handle cuts) {
                new (self) Layout(layout_from_names(mesh, dtype, extents, spec, unreduced, reduction, cuts));
            },
            "mesh"_a, "dtype"_a, "shape"_a, "spec"_a = nb::make_tuple(), "unreduced"_a = nb::make_tuple(),
            "reduction"_a = "sum", "cuts"_a = nb::make_tuple(),
            nb::sig("def __init__(self, mesh: Mesh | str, dtype: object, shape: collections.abc.Sequence[int], "
                    "spec: collections.abc.Iterable[None | str | collections.abc.Iterable[str]] = (), unreduced: "
                    "collections.abc.Sequence[str] = (), "
                    "reduction: str = 'sum', cuts: "
                    "collections.abc.Iterable[None | str | int | collections.abc.Iterable[int]] = ()) -> None"))
        .def_static(
            "from_placements", layout_from_placements, "mesh"_a, "dtype"_a, "shape"_a, "placements"_a,
            nb::sig("def from_placements(mesh: Mesh | str, dtype: object, shape: collections.abc.Sequence[int], "
                    "placements: collections.abc.Iterable[object]) -> Layout"),
            R"doc(From DTensor's placements, one per mesh axis: "S(0)", "R", "P", or torch's own objects.

Axes that cut one dimension do so axis by axis, as torch.chunk does: 5 rows on 2 x 2 devices are 2, 1, 1, 1.)doc")
        .def_prop_ro(
            "mesh", [](const Layout& layout) { return layout.mesh; }, "Its devices and their axes.")
        .def_prop_ro(
            "dtype", [](const Layout& layout) { return std::string(name(layout.dtype)); },
            "The short name of the element type: f32, bf16, bool.")
        .def_prop_ro(
            "numpy_dtype",
            [](const Layout& layout) {
                return nb::module_::import_("reshard.dtypes").attr("numpy_dtype")(text_of(name(layout.dtype)));
            },
            nb::sig("def numpy_dtype(self, /) -> numpy.dtype"),
            "The element type as numpy knows it. Errors: UnsupportedError (bf16 and f8 without the package ml_dtypes).")
        .def_prop_ro(
            "shape", [](const Layout& layout) { return tuple_of(shape(layout)); },
            nb::sig("def shape(self, /) -> tuple[int, ...]"), "The shape of the whole array, in elements.")
        .def_prop_ro(
            "ndim", [](const Layout& layout) { return layout.dims.size(); }, "Dimensions of the array.")
        .def_prop_ro(
            "ranks", [](const Layout& layout) { return world_size(layout.mesh); },
            "Ranks that are needed: one more than the largest device.")
        .def_prop_ro(
            "tile_bytes", [](const Layout& layout) { return tile_bytes(layout); }, "Bytes of the largest tile.")
        .def_prop_ro(
            "global_bytes", [](const Layout& layout) { return global_bytes(layout); },
            "Bytes of the whole array, once.")
        .def_prop_ro(
            "summands", [](const Layout& layout) { return summand_count(layout); }, "1 where nothing is unreduced.")
        .def(
            "tile_shape", [](const Layout& layout, Index rank) { return tuple_of(tile_shape(layout, rank)); }, "rank"_a,
            nb::sig("def tile_shape(self, rank: int) -> tuple[int, ...]"),
            "The tile of a rank, in elements per dimension; 0 if it holds nothing.")
        .def(
            "tile_offset", [](const Layout& layout, Index rank) { return tuple_of(tile_offset(layout, rank)); },
            "rank"_a, nb::sig("def tile_offset(self, rank: int) -> tuple[int, ...]"),
            "The global index of a rank's first element.")
        .def(
            "tile_count", [](const Layout& layout, Index rank) { return tile_count(layout, rank); }, "rank"_a,
            "Elements that a rank holds.")
        .def("tile_indices", indices_of, "rank"_a,
             nb::sig("def tile_indices(self, rank: int) -> tuple[tuple[tuple[int, int], ...], ...]"),
             "The global indices of a rank's tile: per dimension half-open intervals (begin, end), ascending.")
        .def(
            "with_devices",
            [](Layout layout, std::vector<Index> devices) {
                layout.mesh.devices = DeviceList(std::move(devices));
                unwrap(validate(layout));
                return layout;
            },
            "devices"_a, nb::sig("def with_devices(self, devices: collections.abc.Sequence[int]) -> Layout"),
            R"doc(The same cut on other devices: `devices` lists one for each position of the mesh.

Errors: InputError (another number of devices, or a device twice).)doc")
        .def(
            "permuted",
            [](const Layout& layout, const std::vector<Index>& order) { return unwrap(permuted(layout, order)); },
            "order"_a, nb::sig("def permuted(self, order: collections.abc.Sequence[int]) -> Layout"),
            R"doc(The layout of the transposed array: dimension i is dimension order[i] of this one.

Every rank holds the same elements, as `tile.transpose(order)` sees them. Errors: InputError (order does not name each
dimension once).)doc")
        .def("format", written, "notation"_a = "jax",
             R"doc(Its text in a notation: jax, spec, sdy, hlo or dtensor.

Errors: InputError (no such notation); UnsupportedError, naming what the notation has no words for.)doc")
        .def("__str__", [](const Layout& layout) { return format(layout); })
        .def("__repr__",
             [](const Layout& layout) {
                 return fmt::format("parse_layout('{}', '{}')", format(layout.mesh), format(layout));
             })
        .def("__eq__", equal<Layout>, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", [](const Layout& layout) { return hash_of(format(layout.mesh) + ' ' + format(layout)); })
        .def("__getstate__", [](const Layout& layout) { return nb::make_tuple(format(layout.mesh), format(layout)); })
        .def("__setstate__", [](Layout& layout, const std::pair<std::string, std::string>& texts) {
            new (&layout) Layout(unwrap(parse_layout(unwrap(parse_mesh(texts.first)), texts.second)));
        });
    module.def("parse_layout", read_layout, "mesh"_a.none(), "text"_a, "notation"_a = "jax", "array"_a = nb::none(),
               nb::sig("def parse_layout(mesh: Mesh | str | None, text: str, notation: str = 'jax', "
                       "array: str | None = None) -> Layout"),
               R"doc(A layout from text, as JAX prints it: parse_layout("x=2,y=3", "f32[12288@x,4096]").

`notation`: jax, spec (P('x', None)), sdy, hlo or dtensor. Those but the first do not say the element type and the shape:
`array` does, 'f32[8,4]'. sdy and hlo bring their mesh, which may then be None.
Errors: InputError, with a caret under the first wrong place; UnsupportedError, for what is no layout of one array.)doc");
    module.def(
        "translate",
        [](const std::string& text, const std::string& from, const std::string& to, nb::handle mesh,
           const std::optional<std::string>& array) { return written(read_layout(mesh, text, from, array), to); },
        "text"_a, "source"_a = "jax", "target"_a = "jax", "mesh"_a.none() = nb::none(), "array"_a = nb::none(),
        nb::sig("def translate(text: str, source: str = 'jax', target: str = 'jax', mesh: Mesh | str | None = None, "
                "array: str | None = None) -> str"),
        R"doc(A layout from one notation to another: jax, spec, sdy, hlo, dtensor.

`mesh`, `array`: as for parse_layout. Errors: InputError, with a caret; UnsupportedError, naming what `target` has no
words for.)doc");
}

// A property of Machine as Python has it.
const std::string& property_of(const std::string& name) { return name; }
Index property_of(Index figure) { return figure; }
auto property_of(const std::vector<Level>& levels) {
    nb::list all;
    for (const Level& level : levels)
        all.append(nb::make_tuple(level.name, level.bytes_per_second, level.latency_ps * 1e-12));
    return nb::typed<nb::tuple, nb::typed<nb::tuple, std::string, Index, double>, nb::ellipsis>(nb::tuple(all));
}

void add_machine(nb::module_& module) {
    nb::class_<Machine>(module, "Machine",
                        R"doc(What a plan is priced on: levels of the network, and the rate of local copies.

Machine("dgx-h100:nodes=4"), also laptop, tpu-v5p:AxBxC, ethernet:nodes=N,per_node=P; or a machine's text, as `reshard
calibrate` writes it. Errors: InputError.)doc")
        .def(
            "__init__", [](Machine* self, nb::handle text) { new (self) Machine(machine_of(text)); },
            "text"_a = "laptop", nb::sig("def __init__(self, text: str = 'laptop') -> None"))
#define RESHARD_MACHINE(kind, name, about) \
    .def_prop_ro(                          \
        #name, [](const Machine& machine) { return property_of(machine.name); }, about)
#include "src/tables/levels.def"
        .def("__str__", [](const Machine& machine) { return format(machine); })
        .def("__repr__", [](const Machine& machine) { return fmt::format("<Machine {}>", machine.name); })
        .def("__eq__", equal<Machine>, nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
        .def("__hash__", [](const Machine& machine) { return hash_of(format(machine)); })
        .def("__getstate__", [](const Machine& machine) { return format(machine); })
        .def("__setstate__",
             [](Machine& machine, const std::string& text) { new (&machine) Machine(unwrap(parse_machine(text))); });
}

}  // namespace

void add_layouts(nb::module_& module) {
    add_mesh(module);
    add_layout(module);
    add_machine(module);
    nb::list notations;
    for (const Notation notation : all_notations) notations.append(text_of(name(notation)));
    module.attr("notations") = nb::tuple(notations);
}

}  // namespace reshard::python
