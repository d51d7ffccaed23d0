// Batches carried out: read once in the order of the source files, put in place in memory, written in the order of the
// target files.
#pragma once

#include <atomic>
#include <functional>

#include "files/base/open_folder.hpp"
#include "files/engine/geometry.hpp"
#include "files/engine/memory.hpp"
#include "files/engine/open_files.hpp"

namespace reshard::files {

/// What a job does with its memory.
struct MemoryShares {
    Index stretch_bytes = 0;  ///< read at once, by each worker
    Index batch_bytes = 0;    ///< of the target
};

/// Bytes that the disk is asked for before they are read.
constexpr Index ahead_max = Index{64} << 20;

/// A part of a read range, read at once.
struct Stretch {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    std::size_t range = 0;  ///< its number
};

/// Asks the disk for stretches before they are read, so that it always has many to do. Any thread may ask.
class Ahead {
public:
    Ahead(std::vector<Stretch> stretches, OpenFiles& files) : stretches_(std::move(stretches)), files_(&files) {}

    /// So many bytes from the first on have been asked for after it.
    void reach(Index bytes);
    [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }

private:
    std::vector<Stretch> stretches_;
    OpenFiles* files_;
    std::atomic<Index> asked_{0};  // stretches
    std::atomic<Index> asked_bytes_{0};
};

/// Reads source files, each byte of a batch once in the order of the files, and puts it in place.
class SourceReader {
public:
    /// Reads at most `stretch_bytes` at once with each worker. Errors: infeasible.
    [[nodiscard]] static Result<SourceReader> make(const Job& job, Index stretch_bytes);

    /// Of what `read` will read.
    [[nodiscard]] std::unique_ptr<Ahead> ahead_of(const Geometry& geometry);

    /// All that the geometry has in memory. `ahead` is its own, and may have asked for some of it. Errors: io.
    [[nodiscard]] Result<void> read(const Geometry& geometry, std::byte* memory);
    [[nodiscard]] Result<void> read(const Geometry& geometry, std::byte* memory, Ahead& ahead);

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
    TargetWriter(const Job& job, const OpenFolder& folder);

    /// What the geometry has in memory. `wrote`, which may be empty, is told bytes as they are written, by any thread.
    /// Errors: io.
    [[nodiscard]] Result<void> write(const Geometry& geometry, const std::byte* memory,
                                     const std::function<void(Index)>& wrote = {});

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
[[nodiscard]] Result<void> read_again(const Job& job, const OpenFolder& folder, std::span<const std::uint32_t> sums,
                                      Index stretch_bytes);

}  // namespace reshard::files
