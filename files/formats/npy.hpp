// The header of an .npy file, versions 1.0 to 3.0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

struct NpyHeader {
    std::string descr;  ///< as numpy writes it: <f4, |b1, >c16, <V2
    bool fortran_order = false;
    std::vector<Index> shape;
    Index data_offset = 0;  ///< bytes before the first element
};

/// An element type. `kind` is numpy's letter. Complex numbers have two components.
struct Element {
    char kind = 'f';
    Index bytes = 4;
    bool big_endian = false;
};

/// Reads a header. `start` is the first npy_start_max bytes of a file of `file_bytes` bytes, or all of a shorter file.
/// Errors: io (no npy, a file that is cut short, another grammar, a size other than file_bytes); overflow; unsupported
/// (elements that are not numbers).
inline constexpr Index npy_start_max = Index{1} << 20;
[[nodiscard]] Result<NpyHeader> parse_npy(std::string_view start, Index file_bytes);

/// Errors: unsupported.
[[nodiscard]] Result<Element> parse_descr(std::string_view descr);

/// Returns the dtype of the elements. `as` is the type of raw elements (V or u), and must have their size. Errors:
/// mismatch, unsupported.
[[nodiscard]] Result<DType> dtype_of(const Element& element, std::optional<DType> as);

/// The elements of an array in a file.
struct FileElements {
    DType dtype = DType::f32;
    FileType type;         ///< of times, such as datetime64[ns], whose dtype is i64
    bool swapped = false;  ///< big-endian
};
/// Reads numpy's text for a type: <f4, >i8, <M8[ns]. Errors: unsupported.
[[nodiscard]] Result<FileElements> elements_of(std::string_view descr);

/// True for datetime64 and timedelta64.
[[nodiscard]] bool is_time(const FileType& type);

/// Returns numpy's text for a type, little-endian. Types that numpy lacks are raw bytes of their size.
[[nodiscard]] std::string descr_of(DType dtype, const FileType& type = {});

/// Returns a version 1.0 header that ends on a multiple of 64 bytes. A descr that begins with [ describes records. pre:
/// the dimensions fit into such a header.
[[nodiscard]] std::string npy_header(const std::string& descr, bool fortran_order, const std::vector<Index>& shape);

}  // namespace reshard::files
