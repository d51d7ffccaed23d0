// Rows as transports take them: packed, with addresses, in buckets, bound to pages. reshard.rows and reshard.pages show
// these functions.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>

#include "python/bindings/arrays.hpp"
#include "python/bindings/core.hpp"
#include "python/bindings/row_transport.hpp"
#include "reshard/model/pack.hpp"
#include "reshard/model/pages.hpp"

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
    unwrap(without_gil([&] { return pack(rows, sources.spans<const std::byte>(), bytes, threads); }));
}

void unpack_rows(const RowNumbers& numbers, nb::handle packed, const nb::list& tiles, int threads) {
    const std::span<const Row> rows = given_rows(numbers);
    const Tiles targets(tiles, Access::write);
    const Array source = array_of(packed, "packed", Access::read);
    const std::span<const std::byte> bytes = dense_bytes(source, "packed");
    unwrap(without_gil([&] { return unpack(rows, bytes, targets.spans<std::byte>(), threads); }));
}

nb::tuple addressed_rows(const RowNumbers& numbers, bool sends, const Addresses& own, std::uint64_t device,
                         const Addresses& peers, Index arrays, const Addresses& devices) {
    const std::span<const Row> rows = given_rows(numbers);
    AddressedRows memory = unwrap(without_gil([&] {
        return addressed(rows, sends ? RowSide::send : RowSide::receive, {addresses_of(own), device},
                         {addresses_of(peers), arrays, addresses_of(devices)});
    }));
    return nb::make_tuple(numbers_of<std::uint64_t>(std::move(memory.local)),
                          numbers_of<std::uint64_t>(std::move(memory.remote)));
}

nb::object blocks(const nb::ndarray<const std::uint64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>& memory) {
    if (memory.shape(1) != 5)
        raise({Code::mismatch, "strided memory has five numbers: address, bytes, device, stride, count"});
    const std::span<const StridedMemory> given(reinterpret_cast<const StridedMemory*>(memory.data()), memory.shape(0));
    return numbers_of<std::uint64_t>(unwrap(without_gil([&] { return blocks_of(given); })));
}

nb::list buckets(const RowNumbers& numbers, Index staging_bytes) {
    nb::list all;
    for (std::vector<Row>& bucket : unwrap(buckets_of(given_rows(numbers), staging_bytes)))
        all.append(numbers_of<Index>(std::move(bucket)));
    return all;
}

using Chosen = std::tuple<Index, bool, Index, Index, double, double>;

// Picoseconds for a message and for a run, and bytes a second.
using Costs = std::tuple<Index, Index, Index>;

std::vector<Chosen> choose(const RowNumbers& numbers, Index rank, const Costs& direct, const Costs& packed,
                           Index staging_bytes) {
    const TransferCosts costs{std::make_from_tuple<WayCosts>(direct), std::make_from_tuple<WayCosts>(packed)};
    std::vector<Chosen> all;
    for (const PeerTransfer& one : unwrap(choose_transfers(given_rows(numbers), rank, costs, staging_bytes)))
        all.emplace_back(one.peer, one.packed, one.bytes, one.blocks,
                         static_cast<double>(one.direct_picoseconds) * 1e-12,
                         static_cast<double>(one.packed_picoseconds) * 1e-12);
    return all;
}

using Table = nb::ndarray<const Index, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using StridedList = std::vector<StridedMemory>;

// StridedList of arrays that Python has freed. A request takes it again, since touching new memory costs more than
// binding.
class Pool {
public:
    StridedList take() {
        const std::scoped_lock lock(mutex_);
        if (free_.empty()) return {};
        StridedList memory = std::move(free_.back());
        free_.pop_back();
        return memory;
    }
    void give_back(StridedList memory) {
        const std::scoped_lock lock(mutex_);
        if (free_.size() < kept_max) free_.push_back(std::move(memory));
    }

private:
    static constexpr std::size_t kept_max = 4;  // two requests
    std::mutex mutex_;
    std::vector<StridedList> free_;
};

// Shows memory as an array of n x 5 numbers. When the array is freed, the memory goes to the pool.
nb::object shown(StridedList memory, std::shared_ptr<Pool> pool) {
    struct Held {
        StridedList memory;
        std::shared_ptr<Pool> pool;
    };
    auto* const held = new Held{std::move(memory), std::move(pool)};
    const nb::capsule owner(held, [](void* given) noexcept {
        auto* const freed = static_cast<Held*>(given);
        freed->pool->give_back(std::move(freed->memory));
        delete freed;
    });
    const std::size_t shape[] = {held->memory.size(), 5};
    return nb::cast(nb::ndarray<nb::numpy, std::uint64_t>(held->memory.data(), 2, shape, owner));
}

// One end, as reshard.pages.PagedCache has it. A storage of wrong dimensions is left to PageTemplate::make.
Result<PagedCache> cache_of(const Layout& layout, Index block, Index pages, const std::string& storage,
                            Index page_stride, const PageDims& dims) {
    PagedCache cache{layout, block, pages, {}, page_stride};
    const std::size_t rank = layout.dims.size();
    if (storage.empty() || block < 1 || dims.tokens >= rank || dims.layers.value_or(0) >= rank) return cache;
    auto storages = parse_storages(page_layout(cache, dims), storage);
    if (!storages) return tl::unexpected(storages.error());
    cache.storages = *std::move(storages);
    return cache;
}

struct Template {
    PageTemplate made;
    std::shared_ptr<Pool> pool = std::make_shared<Pool>();
};

std::size_t dimension_of(Index number) {
    if (number < 0) raise({Code::mismatch, fmt::format("there is no dimension {}", number)});
    return static_cast<std::size_t>(number);
}

Template template_of(const Layout& source, Index source_block, Index source_pages, const std::string& source_storage,
                     Index source_stride, const Layout& target, Index target_block, Index target_pages,
                     const std::string& target_storage, Index target_stride, Index rank, bool sends, Index tokens,
                     std::optional<Index> layers) {
    PageDims dims{dimension_of(tokens), {}};
    if (layers) dims.layers = dimension_of(*layers);
    auto made = [&]() -> Result<PageTemplate> {
        const Unlocked unlocked;
        const auto from = cache_of(source, source_block, source_pages, source_storage, source_stride, dims);
        if (!from) return tl::unexpected(from.error());
        const auto to = cache_of(target, target_block, target_pages, target_storage, target_stride, dims);
        if (!to) return tl::unexpected(to.error());
        return PageTemplate::make(*from, *to, dims, rank, sends ? RowSide::send : RowSide::receive);
    }();
    return {unwrap(std::move(made))};
}

nb::tuple bind(const Template& pages, const Table& source_pages, const Table& target_pages, Index begin, Index end,
               const Addresses& own, std::uint64_t device, const Addresses& peers, Index arrays,
               const Addresses& devices) {
    PageRows rows{{pages.pool->take(), pages.pool->take()}, {}};
    unwrap(without_gil([&] {
        return pages.made.bind(
            {{source_pages.data(), source_pages.size()}, {target_pages.data(), target_pages.size()}, {begin, end}},
            {{own.data(), own.size()}, device},
            {{peers.data(), peers.size()}, arrays, {devices.data(), devices.size()}}, rows);
    }));
    nb::dict parts;
    for (const PeerRows& peer : rows.peers)
        parts[nb::int_(peer.peer)] = nb::slice(nb::int_(peer.begin), nb::int_(peer.end), nb::none());
    return nb::make_tuple(shown(std::move(rows.memory.local), pages.pool),
                          shown(std::move(rows.memory.remote), pages.pool), parts);
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
    module.def("choose_transfers", choose, "rows"_a, "rank"_a, "direct"_a, "packed"_a, "staging_bytes"_a);
    nb::class_<Template>(module, "Pages", "The rows between two caches in pages. reshard.pages makes them.")
        .def(
            "__init__",
            [](Template* self, const Layout& source, Index source_block, Index source_pages,
               const std::string& source_storage, Index source_stride, const Layout& target, Index target_block,
               Index target_pages, const std::string& target_storage, Index target_stride, Index rank, bool sends,
               Index tokens, std::optional<Index> layers) {
                new (self) Template(template_of(source, source_block, source_pages, source_storage, source_stride,
                                                target, target_block, target_pages, target_storage, target_stride, rank,
                                                sends, tokens, layers));
            },
            "source"_a, "source_block"_a, "source_pages"_a, "source_storage"_a, "source_stride"_a, "target"_a,
            "target_block"_a, "target_pages"_a, "target_storage"_a, "target_stride"_a, "rank"_a, "sends"_a, "tokens"_a,
            "layers"_a.none())
        .def("bind", bind, "source_pages"_a, "target_pages"_a, "begin"_a, "end"_a, "own"_a, "device"_a, "peers"_a,
             "arrays"_a, "devices"_a,
             nb::sig("def bind(self, source_pages: object, target_pages: object, begin: int, end: int, own: object, "
                     "device: int, peers: object, arrays: int, devices: object) -> tuple[numpy.ndarray, numpy.ndarray, "
                     "dict[int, slice]]"))
        .def_prop_ro("period", [](const Template& pages) { return pages.made.period(); });
}

}  // namespace reshard::python
