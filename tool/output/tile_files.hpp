// The outputs of a run: the moved array as one file, and every rank's tiles as files of their own.
#pragma once

#include "reshard/plan.hpp"
#include "tool/output/new_file.hpp"
#include "tool/ranks/ranks.hpp"

namespace reshard::cli {

/// How elements lie in the files of a run.
struct FileStyle {
    std::string descr;  ///< numpy's element type, little-endian
    bool fortran_order = false;
};

/// Collective: checks, before anything moves, that the files may be written. Errors, on all ranks: io.
[[nodiscard]] Result<void> may_write(Rank& rank, const std::string& output, const std::string& tiles);

/// Collective: writes the array from its tiles. Each rank writes its own, and replicas are written once. The file gets
/// its name when rank 0 commits it. Rank 0 alone writes to a pipe or a device, at once. Errors, on all ranks: io.
[[nodiscard]] Result<std::optional<NewFile>> write_array(Rank& rank, const std::string& path, const Layout& target,
                                                         const FileStyle& style, std::span<const std::byte> tile);

/// One end of a move, on this rank.
struct WrittenEnd {
    const Layout& layout;
    FileStyle style;
    std::span<const std::byte> tile;
};

/// Collective: writes rank0.source.npy, rank0.target.npy and rank0.json with their places, and so on, to a new folder.
/// The folder replaces an old one when rank 0 commits it. Errors, on all ranks: io.
[[nodiscard]] Result<std::optional<NewFolder>> write_tiles(Rank& rank, const std::string& path,
                                                           const WrittenEnd& source, const WrittenEnd& target);

}  // namespace reshard::cli
