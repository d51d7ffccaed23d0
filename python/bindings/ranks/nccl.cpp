// The module reshard._nccl: the ranks of an NCCL communicator, which is taken as its pointer.
#include "reshard/backends/nccl.hpp"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <mutex>

#include "python/bindings/arrays.hpp"
#include "python/bindings/door.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

// State kept for communicators, since NCCL has no attributes to hold it. Never freed: CUDA may end first.
struct Kept {
    using Key = std::pair<std::uintptr_t, std::uintptr_t>;  // communicator and stream
    std::mutex mutex;
    std::map<Key, std::shared_ptr<Backend>> backends;
    std::map<std::uintptr_t, std::uintptr_t> last_streams;  // by communicator
};

Kept& kept() {
    static auto* const only = new Kept;
    return *only;
}

struct NcclCall final : Call {
    using Call::Call;
};

const Home& first_use() {
    static const Home home;
    return home;
}

std::shared_ptr<Backend> backend_of(std::uintptr_t communicator, std::uintptr_t stream) {
    expect_home(first_use(), "communicators");
    if (communicator == 0) raise({Code::backend, "there is no rank on a null communicator"});
    auto made = waiting([&]() -> Result<std::shared_ptr<Backend>> {
        {
            const std::lock_guard lock(kept().mutex);
            kept().last_streams[communicator] = stream;
            const auto found = kept().backends.find({communicator, stream});
            if (found != kept().backends.end()) return found->second;
        }
        nccl::Options options;
        options.stream = reinterpret_cast<cudaStream_t>(stream);  // NOLINT: as Python writes handles
        auto backend = nccl::make_backend(reinterpret_cast<ncclComm_t>(communicator), options);
        if (!backend) return tl::unexpected(backend.error());
        std::shared_ptr<Backend> shared = std::move(*backend);
        const std::lock_guard lock(kept().mutex);
        kept().backends.emplace(Kept::Key(communicator, stream), shared);
        return shared;
    });
    return unwrap(std::move(made));
}

// The same for the `stream` that the program gave. A rank that gave none meets the others on the last stream.
std::shared_ptr<Backend> backend_of_any(std::uintptr_t communicator, nb::handle stream) {
    expect_home(first_use(), "communicators");
    std::uintptr_t known = 0;
    if (stream.is_none() || nb::try_cast(stream, known)) return backend_of(communicator, known);
    {
        const Unlocked unlocked;
        const std::lock_guard lock(kept().mutex);
        const auto last = kept().last_streams.find(communicator);
        if (last != kept().last_streams.end()) known = last->second;
    }
    return backend_of(communicator, known);
}

Array device_tile(nb::handle object, const char* what, Access access, const Layout& layout, Index rank) {
    Array array = array_of(object, what, access);
    expect_cuda(array, what);
    expect_tile(array, what, layout.dtype, tile_shape(layout, rank), rank);
    if (!array.row_major()) raise({Code::unsupported, fmt::format("`{}` is not contiguous", what)});
    return array;
}

nb::object allocate(std::uintptr_t communicator, const Layout& layout, std::uintptr_t stream) {
    const auto backend = backend_of(communicator, stream);
    const std::vector<Index> wanted = tile_shape(layout, backend->rank());
    const Index bytes = static_cast<Index>(tile_count(layout, backend->rank())) * size_of(layout.dtype);
    auto memory = unwrap(backend->allocate(bytes));
    const std::span<std::byte> shown = memory->bytes();
    const nb::capsule owner = keeper_of(std::move(memory));
    int device = 0;
    cudaGetDevice(&device);
    const std::vector<std::size_t> shape(wanted.begin(), wanted.end());
    constexpr int cuda = 2;
    return nb::cast(nb::ndarray<nb::array_api>(shown.data(), shape.size(), shape.data(), owner, nullptr,
                                               dlpack_dtype(layout.dtype), cuda, device));
}

void redistribute(std::uintptr_t communicator, nb::handle array, const Layout& source, const Layout& target,
                  nb::handle out, std::uintptr_t stream, bool cast, const std::vector<Index>& permute,
                  nb::handle fill) {
    const auto backend = backend_of(communicator, stream);
    const Array from = device_tile(array, "array", Access::read, source, backend->rank());
    const Array to = device_tile(out, "out", Access::write, target, backend->rank());
    ConstElements in;
    in.bytes = {from.bytes, from.size_bytes()};
    in.dtype = from.dtype;
    Elements moved_to;
    moved_to.bytes = {to.bytes, to.size_bytes()};
    moved_to.dtype = to.dtype;
    const MoveOptions options = changes_of(cast, permute, fill);
    Call::vote(*backend);
    unwrap(waiting([&] { return reshard::redistribute(*backend, source, target, in, moved_to, options); }));
}

void clear_all(std::uintptr_t communicator) {
    expect_home(first_use(), "communicators");
    const Unlocked unlocked;
    std::vector<std::shared_ptr<Backend>> dropped;
    const std::lock_guard lock(kept().mutex);
    kept().last_streams.erase(communicator);
    for (auto at = kept().backends.begin(); at != kept().backends.end();) {
        if (at->first.first != communicator) {
            ++at;
            continue;
        }
        dropped.push_back(std::move(at->second));
        at = kept().backends.erase(at);
    }
}

}  // namespace
}  // namespace reshard::python

NB_MODULE(_nccl, module) {
    using namespace reshard::python;
    nb::module_::import_("reshard._core");  // whose layouts these take
    module.doc() = "Ranks of an NCCL communicator. Use it through reshard.nccl.";
    watch_exit();
    add_calls<NcclCall, std::uintptr_t, std::string, nb::object>(
        module,
        [](std::uintptr_t communicator, const std::string& kind, const nb::object& stream) {
            return std::make_unique<NcclCall>(backend_of_any(communicator, stream), kind_of(kind));
        },
        "communicator"_a, "kind"_a, "stream"_a.none());
    // All ranks make the backend together, before any check that one rank may fail alone.
    module.def(
        "join",
        [](std::uintptr_t communicator, nb::handle stream) { static_cast<void>(backend_of_any(communicator, stream)); },
        "communicator"_a, "stream"_a.none());
    module.def("redistribute", redistribute, "communicator"_a, "array"_a, "source"_a, "target"_a, "out"_a, "stream"_a,
               "cast"_a, "permute"_a, "fill"_a.none());
    module.def("allocate", allocate, "communicator"_a, "layout"_a, "stream"_a,
               nb::sig("def allocate(communicator: int, layout: reshard._core.Layout, stream: int) -> object"));
    module.def("clear", clear_all, "communicator"_a);
}
