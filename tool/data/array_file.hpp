// An array in an .npy file. The engine of files/ reads it, so no rank needs memory for more than its own tiles.
#pragma once

#include "files/engine/run.hpp"
#include "files/formats/npy.hpp"

namespace reshard::cli {

/// Boxes are in the file's order: a Fortran file is an array with its dimensions reversed.
class ArrayFile {
public:
    /// `as` is the type of raw elements. Errors: io, overflow, unsupported, mismatch, infeasible.
    [[nodiscard]] static Result<ArrayFile> open(const std::string& path, std::optional<DType> as);

    [[nodiscard]] const files::NpyHeader& header() const { return header_; }
    [[nodiscard]] DType dtype() const { return job_->source.tensors.front().dtype; }

    /// Reads the elements of the box, dense, in this machine's byte order. pre: the box lies inside, `into` is its
    /// size.
    [[nodiscard]] Result<void> read(const Box& box, std::span<std::byte> into);

private:
    ArrayFile(files::NpyHeader header, files::Element element, std::unique_ptr<files::Job> job,
              files::SourceReader reader);

    files::NpyHeader header_;
    files::Element element_;
    std::unique_ptr<files::Job> job_;  // its source is the array, its target the box that is read
    files::SourceReader reader_;
};

}  // namespace reshard::cli
