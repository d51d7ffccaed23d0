// The header of an .npy file, versions 1.0 to 3.0: what it says, and whether the file can be what it says.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reshard/layout.hpp"

namespace reshard::files {

struct NpyHeader {
    std::string descr;  ///< as numpy writes it: <f4, |b1, >c16, <V2
    bool fortran_order = false;
    std::vector<Index> shape;
    Index data_offset = 0;  ///< bytes before the first element
};

/// What a descr comes to. `kind` is numpy's letter; complex numbers have two components.
struct Element {
    char kind = 'f';
    Index bytes = 4;
    bool big_endian = false;
};

/// `start` are the first bytes of a file of `file_bytes` bytes: npy_start_max of them, or the whole of a shorter file.
/// Errors: io when it is no npy, is cut short, breaks the grammar, or does not add up to file_bytes; overflow;
/// unsupported for element types that are not numbers.
inline constexpr Index npy_start_max = Index{1} << 20;
[[nodiscard]] Result<NpyHeader> parse_npy(std::string_view start, Index file_bytes);

/// Errors: unsupported.
[[nodiscard]] Result<Element> parse_descr(std::string_view descr);

/// The dtype of the elements. `as` says what raw elements (V or u) are; it must have their size.
/// Errors: mismatch, unsupported.
[[nodiscard]] Result<DType> dtype_of(const Element& element, std::optional<DType> as);

/// How numpy describes a dtype, little-endian; types that numpy does not have are raw bytes of their size.
[[nodiscard]] std::string descr_of(DType dtype);

/// A version 1.0 header that ends on a multiple of 64 bytes; a descr that begins with [ is of records. pre: the shape
/// has few enough dimensions for one.
[[nodiscard]] std::string npy_header(const std::string& descr, bool fortran_order, const std::vector<Index>& shape);

}  // namespace reshard::files
