// The header of a .safetensors file: 8 bytes of its length, JSON, then the tensors in C order without holes.
#pragma once

#include <map>
#include <optional>
#include <string_view>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

struct SafetensorsEntry {
    std::string name;
    DType dtype = DType::f32;
    std::vector<Index> shape;
    Index begin = 0;  ///< bytes from the start of the file
    Index end = 0;
    FileType type = {};  ///< of elements that are only copied
};

struct SafetensorsHeader {
    std::vector<SafetensorsEntry> tensors;        ///< by where they begin
    std::map<std::string, std::string> metadata;  ///< of __metadata__
};

inline constexpr Index safetensors_header_max = 100'000'000;

inline constexpr Index dims_max = 255;  ///< of an array in a file of any form

/// Returns the length of the JSON. `start` is the first 8 bytes of a file of `file_bytes`. Errors: io.
[[nodiscard]] Result<Index> safetensors_header_bytes(std::string_view start, Index file_bytes);

/// Reads the JSON. Errors: io (a key twice; offsets that overlap, leave holes, or do not end with the file; sizes that
/// do not fit shapes or 64 bits); unsupported (more than dims_max dimensions; rows of small elements that are no whole
/// bytes). An unknown element type is a FileType, whose width comes from the offsets.
[[nodiscard]] Result<SafetensorsHeader> parse_safetensors(std::string_view text, Index file_bytes);

/// Returns the first bytes of a file whose tensors follow each other in this order, and sets each begin and end. Their
/// length is a multiple of 8. Errors: overflow; unsupported (a type without a name in the format, a header that is too
/// long).
[[nodiscard]] Result<std::string> write_safetensors(std::vector<SafetensorsEntry>& tensors,
                                                    const std::map<std::string, std::string>& metadata);

/// Returns the bytes of a dense tensor. Errors: overflow.
[[nodiscard]] Result<Index> dense_bytes(DType dtype, std::span<const Index> shape);

/// Returns the dtype that carries the elements of a FileType, and their shape in it. Errors: unsupported (rows that are
/// no whole bytes).
struct Carried {
    DType dtype = DType::u8;
    std::vector<Index> shape;
};
[[nodiscard]] Result<Carried> carried(const FileType& type, std::vector<Index> shape);
/// Returns the shape in elements of the type. Errors: unsupported (a cut through an element).
[[nodiscard]] Result<std::vector<Index>> shape_in_elements(const FileType& type, DType dtype, std::vector<Index> shape);

/// Returns row-major strides in bytes.
[[nodiscard]] std::vector<Index> dense_strides(std::span<const Index> extents, Index element_bytes);

/// Returns the box from 0 to the extents.
[[nodiscard]] Box whole_box(std::span<const Index> shape);

}  // namespace reshard::files
