// Rows as transports take them: packed, with addresses, in buckets. reshard.rows shows these functions.
#include <fmt/format.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "python/bindings/arrays.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/row_transport.hpp"
#include "reshard/model/address.hpp"
#include "reshard/model/pack.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

using Addresses = nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu>;

std::span<const std::uint64_t> addresses_of(const Addresses& addresses) { return {addresses.data(), addresses.size()}; }

// The memory of arrays of the host. The arrays are kept alive.
struct Tiles {
    std::vector<Array> arrays;
    Tiles(const nb::list& given, Access access) {
        for (nb::handle tile : given) {
            arrays.push_back(array_of(tile, "tiles", access));
            expect_host(arrays.back(), "tiles");
            if (!arrays.back().extent().empty() && arrays.back().extent().data() != arrays.back().bytes)
                raise({Code::mismatch, "`tiles` has an array with a negative stride"});
        }
    }
    template <class Byte>
    [[nodiscard]] std::vector<std::span<Byte>> spans() const {
        std::vector<std::span<Byte>> all;
        for (const Array& array : arrays) all.push_back(array.extent());
        return all;
    }
};

void pack_rows(const RowNumbers& numbers, const nb::list& tiles, nb::handle packed, int threads) {
    const std::span<const Row> rows = given_rows(numbers);
    const Tiles sources(tiles, Access::read);
    const Array target = array_of(packed, "out", Access::write);
    const std::span<std::byte> bytes = dense_bytes(target, "out");
    const auto done = [&] {
        const Unlocked unlocked;
        return pack(rows, sources.spans<const std::byte>(), bytes, threads);
    }();
    unwrap(done);
}

void unpack_rows(const RowNumbers& numbers, nb::handle packed, const nb::list& tiles, int threads) {
    const std::span<const Row> rows = given_rows(numbers);
    const Tiles targets(tiles, Access::write);
    const Array source = array_of(packed, "packed", Access::read);
    const std::span<const std::byte> bytes = dense_bytes(source, "packed");
    const auto done = [&] {
        const Unlocked unlocked;
        return unpack(rows, bytes, targets.spans<std::byte>(), threads);
    }();
    unwrap(done);
}

nb::tuple addressed_rows(const RowNumbers& numbers, bool sends, const Addresses& own, std::uint64_t device,
                         const Addresses& peers, Index arrays, const Addresses& devices) {
    const std::span<const Row> rows = given_rows(numbers);
    auto made = [&] {
        const Unlocked unlocked;
        return addressed(rows, sends ? RowSide::send : RowSide::receive, {addresses_of(own), device},
                         {addresses_of(peers), arrays, addresses_of(devices)});
    }();
    AddressedRows memory = unwrap(std::move(made));
    return nb::make_tuple(numbers_of<std::uint64_t>(std::move(memory.local)),
                          numbers_of<std::uint64_t>(std::move(memory.remote)));
}

nb::object blocks(const nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& memory) {
    if (memory.shape(1) != 5)
        raise({Code::mismatch, "strided memory has five numbers: address, bytes, device, stride, count"});
    const std::span<const StridedMemory> given(reinterpret_cast<const StridedMemory*>(memory.data()), memory.shape(0));
    auto made = [&] {
        const Unlocked unlocked;
        return blocks_of(given);
    }();
    return numbers_of<std::uint64_t>(unwrap(std::move(made)));
}

nb::list buckets(const RowNumbers& numbers, Index staging_bytes) {
    nb::list all;
    for (std::vector<Row>& bucket : unwrap(buckets_of(given_rows(numbers), staging_bytes)))
        all.append(numbers_of<Index>(std::move(bucket)));
    return all;
}

using Chosen = std::tuple<Index, bool, Index, Index, double, double>;

std::vector<Chosen> choose(const RowNumbers& numbers, Index rank, Index block_picoseconds, Index wire_bytes_per_second,
                           Index pack_bytes_per_second, Index staging_bytes) {
    std::vector<Chosen> all;
    for (const PeerTransfer& one :
         unwrap(choose_transfers(given_rows(numbers), rank,
                                 {block_picoseconds, wire_bytes_per_second, pack_bytes_per_second}, staging_bytes)))
        all.emplace_back(one.peer, one.packed, one.bytes, one.blocks,
                         static_cast<double>(one.direct_picoseconds) * 1e-12,
                         static_cast<double>(one.packed_picoseconds) * 1e-12);
    return all;
}

}  // namespace

void add_row_transport(nb::module_& module) {
    module.def(
        "packed_bytes", [](const RowNumbers& rows) { return unwrap(packed_bytes(given_rows(rows))); }, "rows"_a);
    module.def("pack_rows", pack_rows, "rows"_a, "tiles"_a, "out"_a, "threads"_a);
    module.def("unpack_rows", unpack_rows, "rows"_a, "packed"_a, "tiles"_a, "threads"_a);
    module.def("addressed_rows", addressed_rows, "rows"_a, "sends"_a, "own"_a, "device"_a, "peers"_a, "arrays"_a,
               "devices"_a);
    module.def("memory_blocks", blocks, "memory"_a,
               nb::sig("def memory_blocks(memory: numpy.ndarray) -> numpy.ndarray"));
    module.def("row_buckets", buckets, "rows"_a, "staging_bytes"_a);
    module.def("choose_transfers", choose, "rows"_a, "rank"_a, "block_picoseconds"_a, "wire_bytes_per_second"_a,
               "pack_bytes_per_second"_a, "staging_bytes"_a);
}

}  // namespace reshard::python
