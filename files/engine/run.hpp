// Runs batches. Each is read once in the order of the source files, placed in memory, and written in the order of the
// target files.
#pragma once

#include <atomic>
#include <functional>

#include "files/base/codecs.hpp"
#include "files/base/open_folder.hpp"
#include "files/engine/geometry.hpp"
#include "files/engine/memory.hpp"
#include "files/engine/open_files.hpp"
#include "files/engine/pieces.hpp"

namespace reshard::files {

/// How a job divides its memory.
struct MemoryShares {
    Index stretch_bytes = 0;  ///< that each worker reads at once
    Index batch_bytes = 0;    ///< of the target
};

/// Bytes that are requested from the disk before they are read.
constexpr Index ahead_max = Index{64} << 20;

/// A part of a read range, read at once.
struct Stretch {
    Index file = 0;
    Index begin = 0;
    Index end = 0;
    std::size_t range = 0;  ///< its number
    Index at = 0;           ///< the place of its bytes in the file, before a compressed file is decoded
    Index bytes = 0;        ///< there
};

/// Requests stretches from the disk before they are read, so that the disk always has several requests. Thread-safe.
class Ahead {
public:
    Ahead(std::vector<Stretch> stretches, OpenFiles& files) : stretches_(std::move(stretches)), files_(&files) {}

    /// Requests stretches until `bytes` bytes from the first on have been requested.
    void reach(Index bytes);
    [[nodiscard]] const std::vector<Stretch>& stretches() const { return stretches_; }

private:
    std::vector<Stretch> stretches_;
    OpenFiles* files_;
    std::atomic<Index> asked_{0};  // stretches
    std::atomic<Index> asked_bytes_{0};
};

/// Returns a bound of the bytes that a worker takes to read. `stretch_bytes`: that it reads at once from a file that is
/// not compressed. Errors: as parse_codecs, as available.
[[nodiscard]] Result<Index> reading_bytes(const Checkpoint& source, Index stretch_bytes);

/// Reads source files and places their elements in memory. Each byte of a batch is read once, in the order of the
/// files.
class SourceReader {
public:
    /// Reads at most `stretch_bytes` at once with each worker. Errors: infeasible.
    [[nodiscard]] static Result<SourceReader> make(const Job& job, Index stretch_bytes);

    /// The stretches that `read` will read.
    [[nodiscard]] std::unique_ptr<Ahead> ahead_of(const Geometry& geometry);

    /// Reads everything that the geometry has in memory. `ahead` comes from ahead_of this geometry, and may have
    /// requested some of it. Errors: io.
    [[nodiscard]] Result<void> read(const Geometry& geometry, std::byte* memory);
    [[nodiscard]] Result<void> read(const Geometry& geometry, std::byte* memory, Ahead& ahead);

private:
    SourceReader(const Job& job, Index stretch_bytes, Pages stretches, std::vector<Coder> coders);

    [[nodiscard]] Result<void> fetch(const Stretch& stretch, const ReadRange& range, Index worker, std::byte* bytes);

    const Job* job_;
    Index stretch_bytes_;
    Index buffer_bytes_;  // of each worker
    Pages stretches_;
    std::vector<Coder> coders_;  // of each worker, if the files are compressed
    std::unique_ptr<OpenFiles> files_;
};

/// Does the same for a job whose one source file is memory that begins at `source`.
void place_from_memory(const Job& job, const Geometry& geometry, const std::byte* source, std::byte* memory);

/// Writes target files, and computes the checksums of the bytes that it writes.
class TargetWriter {
public:
    /// `folder` holds the target files, all in their full size. If they are `read_soon`, their pages stay cached, and
    /// the system decides when the disk writes them.
    TargetWriter(const Job& job, const OpenFolder& folder, bool read_soon = false);

    /// Writes everything that the geometry has in memory. Any thread calls `wrote`, which may be empty, with the number
    /// of bytes that it has written. Errors: io.
    [[nodiscard]] Result<void> write(const Geometry& geometry, const std::byte* memory,
                                     const std::function<void(Index)>& wrote = {});
    /// Computes the checksums of everything that the geometry has in memory, and writes nothing: an earlier run has
    /// written it. pre: the files are not compressed.
    void add_sums(const Geometry& geometry, const std::byte* memory);

    /// The numbers that the journal keeps (journal_numbers). They are the raw checksum of each of the job's summed
    /// bytes, over the bytes written so far, or the places of compressed pieces.
    std::vector<std::uint32_t> sums;

private:
    [[nodiscard]] Result<void> put(Index file, Index begin, std::span<const std::byte> bytes);
    void sum(Index file, Index begin, std::span<const std::byte> bytes);

    const Job* job_;
    bool read_soon_;
    std::unique_ptr<OpenFiles> files_;
    std::unique_ptr<std::mutex> mutex_;  // of sums
    std::optional<PieceWriter> pieces_;  // of compressed files
};

}  // namespace reshard::files
