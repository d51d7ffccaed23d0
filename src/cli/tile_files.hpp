// What a run writes: the moved array as one file, and every rank's tiles as files of their own.
#pragma once

#include "array_file.hpp"
#include "ranks.hpp"
#include "reshard/plan.hpp"

namespace reshard::cli {

/// How elements lie in the files of a run.
struct FileStyle {
    std::string descr;  ///< numpy's element type, little-endian
    bool fortran_order = false;
};

/// Collective: writes the array from its tiles, each rank its own, replicas once. The file is made at full size under
/// another name and takes its own only when every rank has written. Errors, on all ranks: io.
[[nodiscard]] Result<void> write_array(Rank& rank, const std::string& path, const Layout& target,
                                       const FileStyle& style, std::span<const std::byte> tile);

/// Collective: rank0.source.npy, rank0.target.npy and rank0.json with their places, and so on, into `folder`, which is
/// made when its parent exists. Errors, on all ranks: io.
[[nodiscard]] Result<void> write_tiles(Rank& rank, const std::string& folder, const Plan& plan, const FileStyle& style,
                                       std::span<const std::byte> source, std::span<const std::byte> target);

}  // namespace reshard::cli
