// The module reshard._mpi: the ranks of an mpi4py communicator, given by its address.
#include "reshard/backends/mpi.hpp"

#include <fmt/format.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/ndarraytypes.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

#include "python/bindings/arrays.hpp"
#include "python/bindings/door.hpp"
#include "python/bindings/executors.hpp"
#include "python/bindings/files.hpp"
#include "python/bindings/programs/runner.hpp"
#include "src/base/apart.hpp"
#include "src/base/try.hpp"

namespace reshard::python {
namespace {

using namespace nb::literals;

struct MpiCall final : Call {
    using Call::Call;
};

// MPI runs in one process. A fork before the first use is not checked.
const Home& first_use() {
    static const Home home;
    return home;
}

MPI_Comm communicator_at(std::uintptr_t address) { return *reinterpret_cast<const MPI_Comm*>(address); }

}  // namespace

std::shared_ptr<Backend> backend_at(std::uintptr_t address) {
    expect_home(first_use(), "communicators");
    return unwrap(waiting([&] { return mpi::backend_of(communicator_at(address)); }));
}

namespace {

void redistribute(std::uintptr_t address, nb::handle array, const Layout& source, const Layout& target, nb::handle out,
                  bool cast, const std::vector<Index>& permute, nb::handle fill) {
    const auto backend = backend_at(address);
    const DenseTile from(array, "array", Access::read, source, backend->rank());
    DenseTile to(out, "out", Access::write, target, backend->rank());
    expect_apart(std::array{NamedArray{&from.original(), "array", false}, NamedArray{&to.original(), "out", true}});
    const MoveOptions options = changes_of(cast, permute, fill);
    Call::vote(*backend);
    unwrap(waiting([&] { return reshard::redistribute(*backend, source, target, from.read(), to.write(), options); }));
    to.finish();
}

// A tile in numpy's own class, dense, of the type and the shape of its layout: most arrays are, and cost less to check.
struct PlainTile {
    std::span<std::byte> bytes;
    nb::object keeper;  // keeps the array alive, which numpy refuses to resize
};

// The number that numpy gives to a type. Types of ml_dtypes have no fixed number.
constexpr std::array<std::pair<DType, int>, 14> numpy_types = {{{DType::f32, NPY_FLOAT32},
                                                                {DType::f64, NPY_FLOAT64},
                                                                {DType::f16, NPY_FLOAT16},
                                                                {DType::c64, NPY_COMPLEX64},
                                                                {DType::c128, NPY_COMPLEX128},
                                                                {DType::boolean, NPY_BOOL},
                                                                {DType::i8, NPY_INT8},
                                                                {DType::i16, NPY_INT16},
                                                                {DType::i32, NPY_INT32},
                                                                {DType::i64, NPY_INT64},
                                                                {DType::u8, NPY_UINT8},
                                                                {DType::u16, NPY_UINT16},
                                                                {DType::u32, NPY_UINT32},
                                                                {DType::u64, NPY_UINT64}}};

int numpy_type(DType dtype) {
    const auto* const found = std::ranges::find(numpy_types, dtype, &std::pair<DType, int>::first);
    return found == numpy_types.end() ? NPY_NOTYPE : found->second;
}

// True for numpy's own class alone, since a subclass may lie about itself. It takes no lock, since an import may let
// another thread run that wants the lock. The class is never freed, since the interpreter ends first.
bool is_plain(nb::handle object) {
    static PyObject* numpys = nullptr;
    if (numpys == nullptr) numpys = nb::object(nb::module_::import_("numpy").attr("ndarray")).release().ptr();
    return object.type().is(numpys);
}

// False for a Layout that __new__ made alone.
bool is_layout(nb::handle object) { return nb::isinstance<Layout>(object) && nb::inst_ready(object); }

// Nullopt for any other object, for an array that is to be written and is read-only, and if memory runs out: then the
// other ranks learn of it in a call that votes. Reads numpy's own structure, since an export by its buffer or by DLPack
// takes 0.15 us.
std::optional<PlainTile> plain_tile(nb::handle object, Access access, const Layout& layout, Index rank) try {
    if (!is_plain(object)) return std::nullopt;
    auto* const array = reinterpret_cast<PyArrayObject*>(object.ptr());
    const PyArray_Descr& type = *PyArray_DESCR(array);
    if (type.type_num != numpy_type(layout.dtype) || !PyArray_ISNBO(type.byteorder)) return std::nullopt;
    if (access == Access::write && !PyArray_ISWRITEABLE(array)) return std::nullopt;
    const std::vector<Index> shape = tile_shape(layout, rank);
    if (static_cast<std::size_t>(PyArray_NDIM(array)) != shape.size()) return std::nullopt;
    const bool empty = std::ranges::find(shape, 0) != shape.end();  // its strides mean nothing
    Index bytes = size_of(layout.dtype);                            // of the elements behind a dimension
    for (std::size_t k = shape.size(); k-- > 0;) {
        if (PyArray_DIMS(array)[k] != shape[k]) return std::nullopt;
        if (!empty && shape[k] != 1 && PyArray_STRIDES(array)[k] != bytes) return std::nullopt;
        bytes *= shape[k];
    }
    auto* const first = static_cast<std::byte*>(PyArray_DATA(array));
    return PlainTile{{first, static_cast<std::size_t>(bytes)}, nb::borrow(object)};
} catch (const std::bad_alloc&) {
    return std::nullopt;
}

// Most calls, at less cost: a communicator that moved before, and plain arrays. False if this is another call: then
// nothing was done, and this rank has not voted.
bool redistribute_plain(std::uintptr_t address, nb::handle array, nb::handle source, nb::handle target,
                        nb::handle out) {
    if (!first_use().here() || !is_layout(source) || !is_layout(target)) return false;
    const auto known = mpi::known_backend(communicator_at(address));
    if (!known || !*known) return false;
    Backend& backend = **known;
    const auto& from = nb::cast<const Layout&>(source);
    const auto& to = nb::cast<const Layout&>(target);
    std::optional<PlainTile> in;
    std::optional<PlainTile> written;
    {
        const InPython running;
        in = plain_tile(array, Access::read, from, backend.rank());
        if (in) written = plain_tile(out, Access::write, to, backend.rank());
    }
    if (!written || !apart(in->bytes, written->bytes)) return false;
    const Turn turn(backend);
    unwrap(waiting([&] { return reshard::redistribute(backend, from, to, in->bytes, written->bytes); }));
    return true;
}

nb::object allocate(std::uintptr_t address, Index bytes) {
    const auto backend = backend_at(address);
    auto taken = [&] {
        const Unlocked unlocked;
        return backend->allocate(bytes);
    }();
    auto memory = unwrap(std::move(taken));
    const std::span<std::byte> shown = memory->bytes();
    const nb::capsule owner = keeper_of(std::move(memory));
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(shown.data(), {shown.size()}, owner));
}

// Returns the address and the bytes of an array that is dense and in the host's memory, else None.
nb::object dense_extent(nb::handle object) {
    const Array array = array_of(object, "array", Access::read);
    expect_pageable(array, "array");
    const std::span<std::byte> extent = array.extent();
    if (array.empty() || extent.size() != array.size_bytes()) return nb::none();
    return nb::make_tuple(reinterpret_cast<std::uintptr_t>(extent.data()), extent.size());
}

/// The caller's arrays while peers reach them. If `keep` is true, they are kept alive, so that numpy refuses to resize
/// them. If it is false, the caller drops this object before the owner of the memory dies.
class RegisteredArrays : NonCopyable {
public:
    RegisteredArrays(std::uintptr_t address, const nb::args& arrays, bool withhold, bool keep)
        : backend_(backend_at(address)) {
        for (std::size_t i = 0; i < arrays.size(); ++i) {
            const std::string name = arrays.size() == 1 ? "array" : fmt::format("arrays[{}]", i);
            arrays_.push_back(array_of(arrays[i], name.c_str(), Access::read));
            expect_pageable(arrays_.back(), name.c_str());
        }
        auto registered = [&] {
            const Unlocked unlocked;
            return enter(withhold ? OnFork::withhold : OnFork::share);
        }();
        unwrap(std::move(registered));
        if (keep) return;
        std::erase_if(arrays_, [](const Array& array) { return array.numpy; });
        for (Array& array : arrays_) {
            nb::ndarray<nb::ro> memory;  // a capsule keeps the memory alive, and not the object
            if (!nb::try_cast(array.object.attr("__dlpack__")(), memory) || memory.data() != array.bytes) continue;
            array.keeper = std::move(memory);
            array.object.reset();
        }
    }
    ~RegisteredArrays() {
        const Unlocked unlocked;
        if (home_.here()) {
            held_.clear();
        } else {  // the parent's locks may be held for ever
            leave(held_);
            leave(backend_);
        }
    }
    void end() {
        std::vector<Array> dropped;  // without the mutex, since it runs Python
        auto ended = [&]() -> Result<void> {
            const Unlocked unlocked;
            const std::lock_guard one_thread(ending_);
            for (; !held_.empty(); held_.pop_back()) RESHARD_CHECK(held_.back().end());
            dropped.swap(arrays_);
            return {};
        }();
        unwrap(std::move(ended));
    }

private:
    Result<void> enter(OnFork on_fork) {
        for (const Array& array : arrays_) {
            RESHARD_TRY(auto& held, backend_->register_memory(array.extent(), on_fork));
            held_.push_back(std::move(held));
        }
        return {};
    }

    std::shared_ptr<Backend> backend_;
    std::vector<Array> arrays_;
    std::vector<Registration> held_;
    std::mutex ending_;
    Home home_;
};

std::unique_ptr<PythonRunner> runner_of(std::uintptr_t address, const Scheduled& scheduled) {
    const auto backend = backend_at(address);
    Call::vote(*backend);
    return std::make_unique<PythonRunner>(scheduled, backend, std::vector<Backend*>{backend.get()});
}

std::shared_ptr<PythonExecutor> prepare(std::uintptr_t address, nb::handle plan, nb::handle sources, nb::handle targets,
                                        nb::handle split) {
    return PythonExecutor::make(backend_at(address), plan, sources, targets, split);
}

std::string library_version() {
    std::string text(MPI_MAX_LIBRARY_VERSION_STRING, ' ');
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    text.resize(static_cast<std::size_t>(length));
    return text;
}

}  // namespace
}  // namespace reshard::python

NB_MODULE(_mpi, module) {
    using namespace reshard::python;
    nb::module_::import_("reshard._core");  // whose layouts and plans these take
    module.doc() = "Ranks of an MPI communicator. Use it through reshard.mpi.";
    watch_exit();
    add_executors(module);
    add_halos(module);
    add_boxes(module);
#ifdef RESHARD_PYTHON_FILES
    add_files(module);
#endif
    add_calls<MpiCall, std::uintptr_t, std::string>(
        module,
        [](std::uintptr_t address, const std::string& kind) {
            return std::make_unique<MpiCall>(backend_at(address), kind_of(kind));
        },
        "address"_a, "kind"_a);
    // All ranks make the backend together, before any check that one rank may fail alone.
    module.def(
        "join", [](std::uintptr_t address) { static_cast<void>(backend_at(address)); }, "address"_a);
    module.def("redistribute", redistribute, "address"_a, "array"_a, "source"_a, "target"_a, "out"_a, "cast"_a,
               "permute"_a, "fill"_a.none());
    module.def("redistribute_plain", redistribute_plain, "address"_a, "array"_a.none(), "source"_a.none(),
               "target"_a.none(), "out"_a.none());  // a refused argument would end the call without a vote
    module.def("allocate", allocate, "address"_a, "bytes"_a,
               nb::sig("def allocate(address: int, bytes: int) -> numpy.ndarray"));
    nb::class_<RegisteredArrays>(module, "RegisteredArrays", "Arrays that are registered, until `end`.")
        .def("end", &RegisteredArrays::end);
    module.def(
        "register",
        [](std::uintptr_t address, const nb::args& arrays, bool withhold, bool keep) {
            return std::make_unique<RegisteredArrays>(address, arrays, withhold, keep);
        },
        "address"_a, "arrays"_a, "withhold"_a, "keep"_a);
    module.def("dense_extent", dense_extent, "array"_a);
    module.def(
        "moves_that_repay",
        [](std::uintptr_t address) {
            return unwrap(waiting([&] { return reshard::mpi::moves_that_repay(communicator_at(address)); }));
        },
        "address"_a);
    module.def("runner", runner_of, "address"_a, "schedule"_a);
    module.def("prepare", prepare, "address"_a, "plan"_a, "sources"_a.none(), "targets"_a.none(), "split"_a.none());
    module.def(
        "capabilities", [](std::uintptr_t address) { return backend_at(address)->capabilities(); }, "address"_a);
    module.def(
        "clear",
        [](std::uintptr_t address) {
            expect_home(first_use(), "communicators");
            int finalized = 0;
            MPI_Finalized(&finalized);
            if (finalized != 0) return;
            auto backend = backend_at(address);
            const Turn turn(*backend);
            const Unlocked unlocked;
            reshard::mpi::clear(communicator_at(address));
            backend.reset();
        },
        "address"_a);
    module.def("library_version", library_version);
}
