// Rows and other structures of equal numbers as two-dimensional arrays of numpy, without copies.
#pragma once

#include <nanobind/ndarray.h>

#include <vector>

#include "python/bindings/errors.hpp"
#include "reshard/model/rows.hpp"

namespace reshard::python {

using RowNumbers = nb::ndarray<const Index, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// The rows in an array of numpy. InputError: not eight numbers each.
[[nodiscard]] inline std::span<const Row> given_rows(const RowNumbers& numbers) {
    static_assert(sizeof(Row) == 8 * sizeof(Index));
    if (numbers.shape(1) != 8) raise({Code::mismatch, "rows have eight numbers each, as reshard.rows.row_dtype says"});
    return {reinterpret_cast<const Row*>(numbers.data()), numbers.shape(0)};
}

/// An array with one line for each element. It owns the vector.
template <class Number, class Element>
[[nodiscard]] nb::object numbers_of(std::vector<Element> elements) {
    static_assert(sizeof(Element) % sizeof(Number) == 0 && std::is_trivially_copyable_v<Element>);
    auto* const kept = new std::vector<Element>(std::move(elements));
    const nb::capsule owner(kept, [](void* held) noexcept { delete static_cast<std::vector<Element>*>(held); });
    const std::size_t shape[] = {kept->size(), sizeof(Element) / sizeof(Number)};
    return nb::cast(nb::ndarray<nb::numpy, Number>(kept->data(), 2, shape, owner));
}

}  // namespace reshard::python
