#include "python/bindings/arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>

#include "python/bindings/gil.hpp"
#include "reshard/text.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::python {
namespace {

// One for the process, never freed: the interpreter may end before static objects are destroyed. Two threads may make
// it at once, since imports let others run; a lock around it would be held by one of them and wanted by the other, with
// the GIL.
struct Numpy {
    nb::object array = nb::module_::import_("numpy").attr("ndarray");
    nb::object ascontiguousarray = nb::module_::import_("numpy").attr("ascontiguousarray");
    nb::object empty = nb::module_::import_("numpy").attr("empty");
    nb::object copyto = nb::module_::import_("numpy").attr("copyto");
    nb::object view = array.attr("view");
    nb::object shares_memory = nb::module_::import_("numpy").attr("shares_memory");
    nb::object too_hard = nb::module_::import_("numpy.exceptions").attr("TooHardError");
    nb::object name_of = nb::module_::import_("reshard.dtypes").attr("name_of");
    std::array<nb::object, 2> raw = {nb::module_::import_("numpy").attr("uint8"),
                                     nb::module_::import_("numpy").attr("uint16")};
    std::vector<std::pair<nb::object, DType>> dtypes;  // as they were met
};

Numpy& numpy() {
    static Numpy* only = nullptr;
    if (only == nullptr) {
        auto* const made = new Numpy;
        if (only == nullptr) only = made;
    }
    return *only;
}

DType dtype_of_numpy(nb::handle dtype) {
    for (const auto& [known, value] : numpy().dtypes)
        if (known.is(dtype)) return value;
    const nb::object named = numpy().name_of(dtype);
    const DType value = unwrap(parse_dtype(nb::cast<const char*>(named)));
    if (numpy().dtypes.size() < 64) numpy().dtypes.emplace_back(nb::borrow(dtype), value);
    return value;
}

using namespace nb::literals;
DType dtype_of_dlpack(nb::dlpack::dtype dtype, const char* what) {
    for (const tables::DTypeRow& row : tables::dtypes)
        if (dtype == dlpack_dtype(row.dtype)) return row.dtype;
    raise({Code::mismatch, fmt::format("`{}` has elements of DLPack's type {} of {} bits, which no layout has", what,
                                       dtype.code, dtype.bits)});
}

// numpy exports no float type of ml_dtypes, so these are taken as integers of their size.
bool bytes_only(DType dtype) { return tables::row(dtype).numpy.empty(); }

std::string shown(const std::vector<Index>& shape) {
    return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

// True if a class of the object is defined in one of these packages.
bool is_of(nb::handle object, std::initializer_list<std::string_view> packages) {
    for (nb::handle type : object.type().attr("__mro__")) {
        const nb::object module = nb::getattr(type, "__module__", nb::none());
        if (!nb::isinstance<nb::str>(module)) continue;
        const std::string name = string_of(module);
        for (const std::string_view package : packages)
            if (name == package || name.starts_with(fmt::format("{}.", package))) return true;
    }
    return false;
}

// The array's memory as DLPack. A capsule of DLPack 1.0 has a read-only flag, which the consumer checks.
nb::object writable_capsule(nb::handle object, const char* what) {
    if (is_of(object, {"jax", "jaxlib"}))
        raise({Code::mismatch, fmt::format("`{}` is an array of JAX, whose arrays are read-only", what)});
    const nb::object give = nb::getattr(object.type(), "__dlpack__", nb::none());
    nb::object capsule;
    try {
        try {
            capsule = give(object, "max_version"_a = nb::make_tuple(1, 0));
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_TypeError)) throw;
            capsule = give(object);  // from before 1.0
        }
    } catch (nb::python_error& error) {
        if (!error.matches(PyExc_Exception)) throw;
        raise({Code::mismatch,
               fmt::format("`{}` gives no memory through DLPack: {}", what, string_of(nb::repr(error.value())))});
    }
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0 || is_of(object, {"torch", "cupy"})) return capsule;
    raise({Code::mismatch,
           fmt::format("`{}` does not say that it may be written: DLPack before 1.0 has no word for it", what)});
}

constexpr int host = 1;         // DLPack's kinds of device
constexpr int pinned_host = 3;  // CUDA's page-locked memory of the host
constexpr int rocm_host = 11;

bool on_host(int device) { return device == host || device == pinned_host || device == rocm_host; }

}  // namespace

std::size_t Array::size_bytes() const {
    Index count = size_of(dtype);
    for (const Index extent : shape) count = saturating_multiply(count, extent);
    return static_cast<std::size_t>(count);
}

std::span<std::byte> Array::extent() const {
    Index lowest = 0;
    Index highest = 0;
    if (empty()) return {};
    for (std::size_t k = 0; k < shape.size(); ++k) {
        (strides[k] < 0 ? lowest : highest) += (shape[k] - 1) * strides[k];
    }
    const Index element = size_of(dtype);
    return {bytes + lowest * element, static_cast<std::size_t>((highest - lowest + 1) * element)};
}

bool Array::empty() const { return std::ranges::find(shape, 0) != shape.end(); }

bool Array::row_major() const {
    if (empty()) return true;
    Index stride = 1;
    for (std::size_t k = shape.size(); k-- > 0;) {
        if (shape[k] != 1 && strides[k] != stride) return false;
        stride = saturating_multiply(stride, shape[k]);
    }
    return true;
}

Array array_of(nb::handle object, const char* what, Access access) {
    const InPython running;
    Array array;
    array.object = nb::borrow(object);
    array.numpy = nb::isinstance(object, numpy().array);
    nb::object seen = array.object;
    if (array.numpy) {
        // A subclass may say of itself what is not so.
        if (!object.type().is(numpy().array)) seen = array.object = numpy().view(object, numpy().array);
        array.dtype = dtype_of_numpy(array.object.attr("dtype"));
        if (bytes_only(array.dtype)) seen = seen.attr("view")(numpy().raw[size_of(array.dtype) == 1 ? 0 : 1]);
        if (access == Access::write && !nb::cast<bool>(array.object.attr("flags").attr("writeable")))
            raise({Code::mismatch, fmt::format("`{}` is read-only", what)});
    } else if (!nb::hasattr(object, "__dlpack__") && !nb::hasattr(object, "__cuda_array_interface__")) {
        throw nb::type_error(
            fmt::format("`{}` is a {}; it must be numpy's, or speak DLPack", what, nb::type_name(object.type()).c_str())
                .c_str());
    } else if (access == Access::write) {
        seen = writable_capsule(object, what);
    }
    nb::ndarray<> writable;
    const bool held = access == Access::read ? nb::try_cast(seen, array.keeper) : nb::try_cast(seen, writable);
    if (access == Access::write) array.keeper = nb::ndarray<nb::ro>(writable);
    if (!held)
        raise({Code::mismatch, fmt::format("`{}` cannot be reached through DLPack: its strides are no multiples of its "
                                           "elements, or it is read-only",
                                           what)});
    if (!array.numpy) array.dtype = dtype_of_dlpack(array.keeper.dtype(), what);
    array.device = array.keeper.device_type();
    array.bytes = static_cast<std::byte*>(const_cast<void*>(array.keeper.data()));
    for (std::size_t k = 0; k < array.keeper.ndim(); ++k) {
        array.shape.push_back(static_cast<Index>(array.keeper.shape(k)));
        array.strides.push_back(array.keeper.stride(k));
    }
    return array;
}

nb::capsule keeper_of(std::unique_ptr<Memory> memory) {
    struct Kept {
        std::unique_ptr<Memory> memory;
        Home home;
    };
    return {new Kept{std::move(memory), {}}, [](void* held) noexcept {
                auto* const kept = static_cast<Kept*>(held);
                if (!kept->home.here()) return;
                const Unlocked unlocked;  // a device may have to end work that other threads go on with
                delete kept;
            }};
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
    const tables::DTypeRow& row = tables::row(dtype);
    return {row.dlpack, static_cast<std::uint8_t>(8 * row.bytes), 1};
}

void expect_host(const Array& array, const char* what) {
    if (!on_host(array.device))
        raise({Code::unsupported, fmt::format("`{}` lies in a device's memory, and this moves the host's; "
                                              "reshard.nccl.redistribute moves arrays on devices",
                                              what)});
}

std::span<std::byte> dense_bytes(const Array& array, const char* what) {
    expect_host(array, what);
    if (!array.row_major()) raise({Code::mismatch, fmt::format("`{}` is not dense and row-major", what)});
    return {array.bytes, array.size_bytes()};
}

void expect_pageable(const Array& array, const char* what) {
    expect_host(array, what);
    if (array.device != host)
        raise({Code::unsupported, fmt::format("`{}` lies in page-locked memory, whose pages stay as they are", what)});
}

void expect_cuda(const Array& array, const char* what) {
    constexpr int cuda = 2;
    constexpr int managed = 13;
    if (array.device != cuda && array.device != managed)
        raise({Code::unsupported, fmt::format("`{}` lies in the host's memory, and this moves a GPU's; "
                                              "reshard.mpi.redistribute moves arrays of the host",
                                              what)});
}

void expect_tile(const Array& array, const char* what, DType dtype, const std::vector<Index>& shape, Index rank) {
    if (array.dtype != dtype)
        raise({Code::mismatch, fmt::format("the elements of `{}` are {}, those of its layout {}", what,
                                           name(array.dtype), name(dtype))});
    if (array.shape != shape)
        raise({Code::mismatch, fmt::format("rank {} holds a tile of shape {}, `{}` has shape {}", rank, shown(shape),
                                           what, shown(array.shape))});
}

namespace {

// As numpy sees it. An array that is not numpy's is dense wherever this is asked, or counts as if it were.
nb::object numpy_view(const Array& array) {
    if (array.numpy) return array.object;
    const auto extent = array.extent();
    return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(extent.data(), {extent.size()}, array.object));
}

// Elements in common, of two arrays whose extents overlap.
bool share_elements(const Array& a, const Array& b) {
    if (a.row_major() && b.row_major()) return true;
    constexpr int steps_max = 1'000'000;  // the question is a hard one for some strides
    try {
        return nb::cast<bool>(numpy().shares_memory(numpy_view(a), numpy_view(b), steps_max));
    } catch (nb::python_error& error) {
        if (!error.matches(numpy().too_hard)) throw;
        return true;
    }
}

}  // namespace

MoveOptions changes_of(bool cast, const std::vector<Index>& permute, nb::handle fill) {
    MoveOptions options{cast, permute};
    if (fill.is_none()) return options;
    const auto given = nb::cast<nb::bytes>(fill);
    const auto* const first = reinterpret_cast<const std::byte*>(given.c_str());
    options.fill.emplace(first, first + given.size());
    return options;
}

void expect_apart(std::span<const NamedArray> arrays) {
    const InPython running;
    struct Range {
        const std::byte* begin;
        const std::byte* end;
        const NamedArray* array;
    };
    std::vector<Range> ranges;
    for (const NamedArray& one : arrays) {
        const auto extent = one.array->extent();
        if (!extent.empty()) ranges.push_back({extent.data(), extent.data() + extent.size(), &one});
    }
    std::ranges::sort(ranges, std::less<const std::byte*>(), &Range::begin);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        for (std::size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
            const NamedArray* first = ranges[i].array;
            const NamedArray* second = ranges[j].array;
            if ((!first->written && !second->written) || !share_elements(*first->array, *second->array)) continue;
            if (second < first) std::swap(first, second);
            raise({Code::mismatch, fmt::format("`{}` and `{}` overlap in memory", first->name, second->name)});
        }
    }
}

DenseTile::DenseTile(nb::handle object, const char* what, Access access, const Layout& layout, Index rank)
    : original_(array_of(object, what, access)), array_(original_), access_(access) {
    expect_host(original_, what);
    expect_tile(original_, what, layout.dtype, tile_shape(layout, rank), rank);
    if (original_.row_major()) return;
    const InPython running;
    if (!original_.numpy)
        raise({Code::unsupported, fmt::format("`{}` is not contiguous, which only arrays of numpy may be here", what)});
    const nb::object& whole = original_.object;
    const nb::object dense = access == Access::read ? numpy().ascontiguousarray(whole)
                                                    : numpy().empty(whole.attr("shape"), whole.attr("dtype"));
    array_ = array_of(dense, what, access);
}

ConstElements DenseTile::read() const {
    ConstElements elements;
    elements.bytes = {array_.bytes, array_.size_bytes()};
    elements.dtype = array_.dtype;
    return elements;
}

Elements DenseTile::write() const {
    Elements elements;
    elements.bytes = {array_.bytes, array_.size_bytes()};
    elements.dtype = array_.dtype;
    return elements;
}

void DenseTile::finish() {
    const InPython running;
    if (access_ == Access::write && !array_.object.is(original_.object))
        numpy().copyto(original_.object, array_.object);
}

}  // namespace reshard::python
