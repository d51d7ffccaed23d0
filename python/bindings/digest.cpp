// Digests of arrays, without copies and without the GIL.
#include "reshard/model/digest.hpp"

#include <fmt/format.h>
#include <nanobind/operators.h>
#include <nanobind/stl/string.h>

#include "python/bindings/arrays.hpp"
#include "python/bindings/convert.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/row_transport.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

void expect_place(Index position, Index number, std::size_t bytes) {
    if (position < 0 || !checked_add(position, static_cast<Index>(bytes)))
        raise({Code::mismatch, fmt::format("the position {} is below 0, or too large", position)});
    if (number < 0) raise({Code::mismatch, fmt::format("the number of an array is {}; it is 0 or more", number)});
}

Digest digest_of(const DigestKeys& keys, nb::handle object, Index position, Index number) {
    const Array array = array_of(object, "array", Access::read);
    const std::span<const std::byte> bytes = dense_bytes(array, "array");
    expect_place(position, number, bytes.size());
    const Unlocked unlocked;
    return keys.of(bytes, position, number);
}

Digest copied(const DigestKeys& keys, nb::handle source, nb::handle target, Index position, Index number) {
    const Array from = array_of(source, "source", Access::read);
    const Array to = array_of(target, "target", Access::write);
    const std::span<const std::byte> bytes = dense_bytes(from, "source");
    const std::span<std::byte> place = dense_bytes(to, "target");
    if (bytes.size() != place.size())
        raise({Code::mismatch, fmt::format("the source has {} bytes, the target {}", bytes.size(), place.size())});
    expect_place(position, number, bytes.size());
    const NamedArray named[] = {{&from, "source", false}, {&to, "target", true}};
    expect_apart(named);
    const Unlocked unlocked;
    return keys.copy(bytes, place.data(), position, number);
}

Digest of_rows(const DigestKeys& keys, const RowNumbers& numbers, nb::list tiles, bool sends) {
    std::vector<Array> arrays;
    for (nb::handle tile : tiles) arrays.push_back(array_of(tile, "tiles", Access::read));
    std::vector<std::span<const std::byte>> bytes;
    for (const Array& array : arrays) bytes.emplace_back(dense_bytes(array, "tiles"));
    const std::span<const Row> rows = given_rows(numbers);
    return unwrap(
        without_gil([&] { return digest_rows(keys, rows, bytes, sends ? RowSide::send : RowSide::receive); }));
}

Digest of_tile(const DigestKeys& keys, const Layout& layout, Index rank, nb::handle tile, Index number) {
    const Array array = array_of(tile, "tile", Access::read);
    const std::span<const std::byte> bytes = dense_bytes(array, "tile");
    expect_place(0, number, bytes.size());
    return unwrap(without_gil([&] { return digest_tile(keys, layout, rank, bytes, number); }));
}

}  // namespace

void add_digests(nb::module_& module) {
    nb::class_<Digest>(module, "Digest",
                       "The digest of a set of bytes. Digests of two sets add; n replicas have n times the digest.")
        .def(
            "__init__",
            [](Digest* self, std::uint64_t sum, Index bytes) {
                if (sum >= Digest::prime || bytes < 0)
                    raise({Code::mismatch,
                           fmt::format("a digest has a sum below 2^61 - 1 and 0 or more bytes, not {} and {}", sum,
                                       bytes)});
                new (self) Digest{sum, bytes};
            },
            "sum"_a = 0, "bytes"_a = 0)
        .def_ro("sum", &Digest::sum, "The sum of the keyed bytes, below 2^61 - 1.")
        .def_ro("bytes", &Digest::bytes, "How many bytes, replicas counted.")
        .def(nb::self + nb::self)
        .def(nb::self - nb::self)
        .def(
            "__rmul__",
            [](const Digest& one, Index copies) {
                if (copies < 0) raise({Code::mismatch, fmt::format("{} copies; 0 or more are wanted", copies)});
                return copies * one;
            },
            "copies"_a)
        .def("__eq__", [](const Digest& a, nb::handle b) { return is_instance<Digest>(b) && a == nb::cast<Digest>(b); })
        .def("__hash__", [](const Digest& one) { return static_cast<Py_hash_t>(one.sum & 0x7fffffffffffffff); })
        .def("__repr__", [](const Digest& one) { return fmt::format("Digest({}, {})", one.sum, one.bytes); });
    nb::class_<DigestKeys>(module, "DigestKeyTable", "The keys of digests. reshard.DigestKeys makes them.")
        .def(nb::init<std::uint64_t>(), "seed"_a)
        .def("of", digest_of, "array"_a, "position"_a, "number"_a)
        .def("copy", copied, "source"_a, "target"_a, "position"_a, "number"_a)
        .def("rows", of_rows, "rows"_a, "tiles"_a, "sends"_a,
             nb::sig("def rows(self, rows: numpy.ndarray, tiles: list, sends: bool) -> Digest"))
        .def("tile", of_tile, "layout"_a, "rank"_a, "tile"_a, "number"_a);
}

}  // namespace reshard::python
