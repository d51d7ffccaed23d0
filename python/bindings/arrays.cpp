#include "python/bindings/arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "reshard/text.hpp"

namespace reshard::python {
namespace {

// Of this process, never freed: the interpreter may be gone before static objects are.
struct Numpy {
    nb::object array = nb::module_::import_("numpy").attr("ndarray");
    nb::object ascontiguousarray = nb::module_::import_("numpy").attr("ascontiguousarray");
    nb::object empty = nb::module_::import_("numpy").attr("empty");
    nb::object copyto = nb::module_::import_("numpy").attr("copyto");
    nb::object name_of = nb::module_::import_("reshard.dtypes").attr("name_of");
    std::array<nb::object, 2> raw = {nb::module_::import_("numpy").attr("uint8"),
                                     nb::module_::import_("numpy").attr("uint16")};
    std::vector<std::pair<nb::object, DType>> dtypes;  // as they were met
};

Numpy& numpy() {
    static auto* const only = new Numpy;
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

using Kind = nb::dlpack::dtype_code;
constexpr std::array<std::pair<Kind, DType>, 17> kinds = {{{Kind::Bool, DType::boolean},
                                                           {Kind::Int, DType::i8},
                                                           {Kind::Int, DType::i16},
                                                           {Kind::Int, DType::i32},
                                                           {Kind::Int, DType::i64},
                                                           {Kind::UInt, DType::u8},
                                                           {Kind::UInt, DType::u16},
                                                           {Kind::UInt, DType::u32},
                                                           {Kind::UInt, DType::u64},
                                                           {Kind::Float8_E4M3FN, DType::f8_e4m3fn},
                                                           {Kind::Float8_E5M2, DType::f8_e5m2},
                                                           {Kind::Float, DType::f16},
                                                           {Kind::Bfloat, DType::bf16},
                                                           {Kind::Float, DType::f32},
                                                           {Kind::Float, DType::f64},
                                                           {Kind::Complex, DType::c64},
                                                           {Kind::Complex, DType::c128}}};

DType dtype_of_dlpack(nb::dlpack::dtype dtype, const char* what) {
    for (const auto& [kind, value] : kinds)
        if (dtype == dlpack_dtype(value)) return value;
    raise({Code::mismatch, fmt::format("`{}` has elements of DLPack's type {} of {} bits, which no layout has", what,
                                       dtype.code, dtype.bits)});
}

// numpy gives the float types of ml_dtypes to nobody, so they are taken as integers of their size.
bool bytes_only(DType dtype) { return dtype == DType::bf16 || dtype == DType::f8_e4m3fn || dtype == DType::f8_e5m2; }

std::string shown(const std::vector<Index>& shape) {
    return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

constexpr int host = 1;         // DLPack's kinds of device
constexpr int pinned_host = 3;  // CUDA's page-locked memory of the host
constexpr int rocm_host = 11;

bool on_host(int device) { return device == host || device == pinned_host || device == rocm_host; }

}  // namespace

std::size_t Array::size_bytes() const {
    Index count = size_of(dtype);
    for (const Index extent : shape) count *= extent;
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
        stride *= shape[k];
    }
    return true;
}

Array array_of(nb::handle object, const char* what, Access access) {
    Array array;
    array.object = nb::borrow(object);
    array.numpy = nb::isinstance(object, numpy().array);
    nb::object seen = array.object;
    if (array.numpy) {
        array.dtype = dtype_of_numpy(object.attr("dtype"));
        if (bytes_only(array.dtype)) seen = object.attr("view")(numpy().raw[size_of(array.dtype) == 1 ? 0 : 1]);
        if (access == Access::write && !nb::cast<bool>(object.attr("flags").attr("writeable")))
            raise({Code::mismatch, fmt::format("`{}` is read-only", what)});
    } else if (!nb::hasattr(object, "__dlpack__") && !nb::hasattr(object, "__cuda_array_interface__")) {
        throw nb::type_error(
            fmt::format("`{}` is a {}; it must be numpy's, or speak DLPack", what, nb::type_name(object.type()).c_str())
                .c_str());
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
                const nb::gil_scoped_release unlocked;  // a device may have to end work that other threads go on with
                delete kept;
            }};
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
    for (const auto& [kind, value] : kinds)
        if (value == dtype) return {static_cast<std::uint8_t>(kind), static_cast<std::uint8_t>(8 * size_of(dtype)), 1};
    return {};
}

void expect_host(const Array& array, const char* what) {
    if (!on_host(array.device))
        raise({Code::unsupported, fmt::format("`{}` lies in a device's memory, and this moves the host's; "
                                              "reshard.nccl.redistribute moves arrays on devices",
                                              what)});
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

DenseTile::DenseTile(nb::handle object, const char* what, Access access, const Layout& layout, Index rank)
    : array_(array_of(object, what, access)) {
    expect_host(array_, what);
    expect_tile(array_, what, layout.dtype, tile_shape(layout, rank), rank);
    if (array_.row_major()) return;
    if (!array_.numpy)
        raise({Code::unsupported, fmt::format("`{}` is not contiguous, which only arrays of numpy may be here", what)});
    original_ = array_.object;
    const nb::object dense = access == Access::read ? numpy().ascontiguousarray(original_)
                                                    : numpy().empty(original_.attr("shape"), original_.attr("dtype"));
    array_ = array_of(dense, what, access);
    if (access == Access::read) original_ = nb::object();
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
    if (original_.is_valid()) numpy().copyto(original_, array_.object);
}

}  // namespace reshard::python
