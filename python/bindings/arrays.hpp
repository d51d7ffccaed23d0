// Arrays of numpy and of libraries that speak DLPack, as memory that a run reads or writes.
#pragma once

#include <nanobind/ndarray.h>

#include <optional>
#include <vector>

#include "python/bindings/errors.hpp"
#include "reshard/backends/backend.hpp"
#include "reshard/elements.hpp"
#include "reshard/move_options.hpp"

namespace reshard::python {

enum class Access { read, write };

/// The memory of an array. The array is kept alive. Strides are in elements.
struct Array {
    std::byte* bytes = nullptr;  ///< of the first element
    DType dtype = DType::f32;
    std::vector<Index> shape;
    std::vector<Index> strides;
    int device = 0;      ///< DLPack's kind of device
    nb::object object;   ///< numpy's array, as numpy's own class, or what was given
    bool numpy = false;  ///< whether it is numpy's
    nb::ndarray<nb::ro> keeper;

    [[nodiscard]] std::size_t size_bytes() const;
    /// The memory from the lowest element to the highest, gaps included.
    [[nodiscard]] std::span<std::byte> extent() const;
    [[nodiscard]] bool empty() const;      ///< without elements: its strides mean nothing
    [[nodiscard]] bool row_major() const;  ///< dense, the last dimension contiguous; also when empty
};

/// `what` names it in sentences. Memory is written only if its owner says that it may be: numpy's flags, or DLPack 1.0
/// without the read-only flag. DLPack before 1.0 says nothing, so only arrays of torch and cupy, which are always
/// writable, are written through it. Errors raised: TypeError; InputError (an element type that layouts do not have, an
/// array that is to be written and is not writable).
[[nodiscard]] Array array_of(nb::handle object, const char* what, Access access);

/// Checks that the memory is on the host or on a CUDA device. Raises UnsupportedError.
void expect_host(const Array& array, const char* what);
void expect_cuda(const Array& array, const char* what);  ///< likewise
/// Checks that the memory is on the host and not page-locked: then its pages can be exchanged. Raises UnsupportedError.
void expect_pageable(const Array& array, const char* what);
/// The bytes of an array on the host. Raises UnsupportedError, and InputError if it is not dense and row-major.
[[nodiscard]] std::span<std::byte> dense_bytes(const Array& array, const char* what);
/// Checks the element type, and that the shape is that of the rank's tile. Raises InputError.
void expect_tile(const Array& array, const char* what, DType dtype, const std::vector<Index>& shape, Index rank);

/// How an array changes while it moves. `fill` is an object of bytes, one element, or None for a move without padding.
[[nodiscard]] MoveOptions changes_of(bool cast, const std::vector<Index>& permute, nb::handle fill);

/// Checks that no written array shares an element with any other array. Raises InputError with their names.
struct NamedArray {
    const Array* array;
    std::string name;
    bool written;
};
void expect_apart(std::span<const NamedArray> arrays);

/// Keeps memory of a backend alive for an array that shows it. In a process that was forked off it is never freed: the
/// locks of the backend may be held for ever there.
[[nodiscard]] nb::capsule keeper_of(std::unique_ptr<Memory> memory);

/// The element type as DLPack says it.
[[nodiscard]] nb::dlpack::dtype dlpack_dtype(DType dtype);

/// As array_of, expect_host and expect_tile, but dense: the elements of any other array are copied into a dense one.
/// `finish` copies written elements back.
class DenseTile {
public:
    DenseTile(nb::handle object, const char* what, Access access, const Layout& layout, Index rank);
    [[nodiscard]] ConstElements read() const;
    [[nodiscard]] Elements write() const;
    [[nodiscard]] const Array& original() const { return original_; }
    void finish();

private:
    Array original_;
    Array array_;  // the original, or a dense copy of it
    Access access_;
};

}  // namespace reshard::python
