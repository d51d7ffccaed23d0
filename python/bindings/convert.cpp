#include "python/bindings/convert.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include "reshard/text.hpp"

namespace reshard::python {

Mesh mesh_of(nb::handle mesh) {
    Mesh known;
    if (nb::try_cast(mesh, known)) return known;
    if (nb::isinstance<nb::str>(mesh)) return unwrap(parse_mesh(string_of(mesh)));
    throw nb::type_error("a mesh is a Mesh or its text, such as 'x=2,y=3'");
}

Machine machine_of(nb::handle machine) {
    static const Machine usual = laptop();
    if (machine.is_none()) return usual;
    Machine known;
    if (nb::try_cast(machine, known)) return known;
    if (!nb::isinstance<nb::str>(machine))
        throw nb::type_error("a machine is a Machine, the name of one that is built in, or its text");
    const auto text = string_of(machine);
    return unwrap(text.find('\n') == std::string::npos ? make_machine(text) : parse_machine(text));
}

DType dtype_of(nb::handle dtype) {
    const InPython running;
    if (!nb::isinstance<nb::str>(dtype))
        return unwrap(parse_dtype(string_of(nb::module_::import_("reshard.dtypes").attr("name_of")(dtype))));
    return unwrap(parse_dtype(string_of(dtype)));
}

Index bytes_of(nb::handle bytes) {
    if (nb::isinstance<nb::str>(bytes)) return unwrap(parse_bytes(string_of(bytes)));
    const auto number = value_of<Index>(bytes, "bytes are an int, or a text such as '96MiB'");
    if (number < 0) raise({Code::usage, fmt::format("{} bytes are less than none", number)});
    return number;
}

std::optional<Index> limit_of(nb::handle bytes) {
    return bytes.is_none() ? std::nullopt : std::optional(bytes_of(bytes));
}

double seconds_of(Index picoseconds) { return static_cast<double>(picoseconds) * 1e-12; }

Py_hash_t hash_of(const std::string& text) { return nb::hash(nb::str(text.c_str(), text.size())); }

nb::tuple tuple_of(const std::vector<Index>& numbers) {
    nb::list list;
    for (const Index number : numbers) list.append(number);
    return nb::tuple(list);
}

std::string shown(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text;
}

std::string preformatted(std::string_view text) {
    std::string html = "<pre>";
    for (const char c : text) html += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return html + "</pre>";
}

}  // namespace reshard::python
