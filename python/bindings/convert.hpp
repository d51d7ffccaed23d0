// Arguments that Python programs write in more than one way.
#pragma once

#include <optional>
#include <vector>

#include "python/bindings/errors.hpp"
#include "reshard/planner/cost.hpp"

namespace reshard::python {

/// The value as a T. TypeError: `wanted` says what it may be, a sentence.
template <class T>
[[nodiscard]] T value_of(nb::handle value, const char* wanted) {
    T known;
    if (value.is_none() || !nb::try_cast(value, known)) throw nb::type_error(wanted);
    return known;
}
/// Whether it is a T that can be read: what T.__new__(T) returns has no value yet.
template <class T>
[[nodiscard]] bool is_instance(nb::handle value) {
    return nb::isinstance<T>(value) && nb::inst_ready(value);
}
/// The same for the classes of this module, without a copy.
template <class T>
[[nodiscard]] const T& instance_of(nb::handle value, const char* wanted) {
    if (!is_instance<T>(value)) throw nb::type_error(wanted);
    return *nb::inst_ptr<T>(value);
}

/// A Mesh, or its text.
[[nodiscard]] Mesh mesh_of(nb::handle mesh);
/// A Machine, or its text; none is the laptop.
[[nodiscard]] Machine machine_of(nb::handle machine);
/// A name, short or long, or whatever numpy.dtype takes.
[[nodiscard]] DType dtype_of(nb::handle dtype);
/// Bytes as a number, or as text: 96MiB.
[[nodiscard]] Index bytes_of(nb::handle bytes);
/// The same; none for None.
[[nodiscard]] std::optional<Index> limit_of(nb::handle bytes);

[[nodiscard]] double seconds_of(Index picoseconds);
/// A hash for values that are equal if their texts are equal.
[[nodiscard]] Py_hash_t hash_of(const std::string& text);
[[nodiscard]] nb::tuple tuple_of(const std::vector<Index>& numbers);

/// The text without the end of its last line, which print adds.
[[nodiscard]] std::string shown(std::string text);

/// <pre> with the text in it.
[[nodiscard]] std::string preformatted(std::string_view text);

}  // namespace reshard::python
