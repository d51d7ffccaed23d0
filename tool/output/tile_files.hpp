// What a run writes: the moved array as one file, and every rank's tiles as files of their own.
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

/// Collective: looks whether the files may be written, before anything moves. Errors, on all ranks: io.
[[nodiscard]] Result<void> may_write(Rank& rank, const std::string& output, const std::string& tiles);

/// Collective: writes the array from its tiles, each rank its own, replicas once. It has no name of its own before rank
/// 0 commits it; into a pipe or a device rank 0 writes all of it at once. Errors, on all ranks: io.
[[nodiscard]] Result<std::optional<NewFile>> write_array(Rank& rank, const std::string& path, const Layout& target,
                                                         const FileStyle& style, std::span<const std::byte> tile);

/// Collective: rank0.source.npy, rank0.target.npy and rank0.json with their places, and so on, into a new folder, which
/// takes the place of the one that may be there when rank 0 commits it. Errors, on all ranks: io.
[[nodiscard]] Result<std::optional<NewFolder>> write_tiles(Rank& rank, const std::string& path, const Plan& plan,
                                                           const FileStyle& style, std::span<const std::byte> source,
                                                           std::span<const std::byte> target);

}  // namespace reshard::cli
