// Tiles of an array in an .npy file. Each rank reads and writes its own tiles only, at 64-bit offsets, so no rank
// needs memory for more than those.
#pragma once

#include <vector>

#include "tool/files/file.hpp"
#include "tool/files/npy.hpp"

namespace reshard::cli {

/// Boxes are in the file's order; for a Fortran file they are `reversed`.
class ArrayFile {
public:
    /// `as` says what raw elements are. Errors: io, overflow, unsupported, mismatch.
    [[nodiscard]] static Result<ArrayFile> open(const std::string& path, std::optional<DType> as);

    [[nodiscard]] const NpyHeader& header() const { return header_; }
    [[nodiscard]] DType dtype() const { return dtype_; }

    /// The elements of the box, dense, in this machine's byte order. pre: the box lies inside, `into` is its size.
    [[nodiscard]] Result<void> read(const Box& box, std::span<std::byte> into);

private:
    ArrayFile(File file, NpyHeader header, Element element, DType dtype);
    [[nodiscard]] Result<void> read_run(Index offset, std::span<std::byte> into, bool ahead);
    void swap(std::span<std::byte> elements) const;

    File file_;
    NpyHeader header_;
    Element element_;
    DType dtype_;
    Index data_end_ = 0;
    std::vector<Index> shape_;  // in the file's order
    std::vector<std::byte> ahead_;
    Index ahead_begin_ = 0;
    Index ahead_end_ = 0;
};

/// Writes a dense tile to its place in a file whose data begins at `data_offset`; shape and box in the file's order.
[[nodiscard]] Result<void> write_box(const File& file, Index data_offset, const std::vector<Index>& shape,
                                     const Box& box, Index element_bytes, std::span<const std::byte> from);

}  // namespace reshard::cli
