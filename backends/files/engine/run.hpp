// Batches carried out: read once in the order of the source files, put in place in memory, written in the order of the
// target files.
#pragma once

#include "backends/files/engine/geometry.hpp"
#include "backends/files/engine/memory.hpp"
#include "backends/files/engine/open_files.hpp"

namespace reshard::files {

/// What a job does with its memory.
struct MemoryShares {
    Index stretch_bytes = 0;  ///< read at once, by each worker
    Index batch_bytes = 0;    ///< of the target
};

/// Reads source files, each byte of a batch once in the order of the files, and puts it in place.
class SourceReader {
public:
    /// Reads at most `stretch_bytes` at once with each worker. Errors: infeasible.
    [[nodiscard]] static Result<SourceReader> make(const Job& job, Index stretch_bytes);

    /// All that the geometry has in memory. Errors: io.
    [[nodiscard]] Result<void> read(const Geometry& geometry, std::byte* memory);

private:
    SourceReader(const Job& job, Index stretch_bytes, Pages stretches);

    const Job* job_;
    Index stretch_bytes_;
    Pages stretches_;
    std::unique_ptr<OpenFiles> files_;
};

/// The same where the one source file is memory from `source` on.
void place_from_memory(const Job& job, const Geometry& geometry, const std::byte* source, std::byte* memory);

/// Writes target files, and sums up what it writes.
class TargetWriter {
public:
    /// `folder`: where the target files are, all of their full size.
    TargetWriter(const Job& job, const std::string& folder);

    /// What the geometry has in memory. Errors: io.
    [[nodiscard]] Result<void> write(const Geometry& geometry, const std::byte* memory);

    /// The raw checksum of each of the job's summed bytes, of what has been written so far.
    std::vector<std::uint32_t> sums;

private:
    [[nodiscard]] Result<void> put(Index file, Index begin, std::span<const std::byte> bytes);
    void sum(Index file, Index begin, std::span<const std::byte> bytes);

    const Job* job_;
    std::unique_ptr<OpenFiles> files_;
    std::unique_ptr<std::mutex> mutex_;  // of sums
};

/// Reads all summed bytes of the files in the folder again. Errors: io (other bytes than were written).
[[nodiscard]] Result<void> read_again(const Job& job, const std::string& folder, std::span<const std::uint32_t> sums,
                                      Index stretch_bytes);

}  // namespace reshard::files
