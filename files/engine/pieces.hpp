// Writes compressed files: encodes the pieces of a batch, and knows where each piece is.
#pragma once

#include <atomic>
#include <functional>

#include "files/base/codecs.hpp"
#include "files/base/open_folder.hpp"
#include "files/engine/geometry.hpp"
#include "files/engine/memory.hpp"
#include "files/engine/open_files.hpp"

namespace reshard::files {

/// Returns how many numbers the journal of a job keeps: a checksum for each of the summed bytes, or five numbers for
/// each compressed piece, with its place, its size and its checksum.
[[nodiscard]] std::size_t journal_numbers(const NewFiles& files);

/// Returns a bound of the bytes that a worker takes to encode pieces. Errors: as available.
[[nodiscard]] Result<Index> encoding_bytes(const NewFiles& files);

/// Writes pieces. The pieces of a shard lie in the file in the order of writing.
class PieceWriter {
public:
    /// Errors: as available; infeasible.
    [[nodiscard]] static Result<PieceWriter> make(const Job& job);

    /// Encodes and writes every piece that the geometry has in memory. Updates `numbers`, as journal_numbers says. Any
    /// thread calls `wrote`, which may be empty, with a number of decoded bytes. Errors: io.
    [[nodiscard]] Result<void> write(const Geometry& geometry, const std::byte* memory, OpenFiles& files,
                                     std::span<std::uint32_t> numbers, const std::function<void(Index)>& wrote);

private:
    struct Part;   // bytes of a piece in memory
    struct Piece;  // its parts, and its encoded bytes

    PieceWriter(const Job& job, Index room, Pages pages, std::vector<Coder> coders);

    [[nodiscard]] std::vector<Part> parts_of(const Geometry& geometry) const;
    [[nodiscard]] Result<void> encode(Piece& piece, std::span<const Part> parts, const std::byte* memory, Index worker,
                                      std::span<std::byte> into);
    [[nodiscard]] Result<void> encode_run(std::span<Piece> run, std::span<const Part> parts, const std::byte* memory,
                                          Index worker, Index at);
    [[nodiscard]] Result<void> put(std::span<const Piece> run, std::span<const Part> parts, OpenFiles& files,
                                   std::span<const std::uint32_t> numbers);
    void recall(std::span<const std::uint32_t> numbers);
    [[nodiscard]] std::span<const std::byte> decoded(std::span<const Part> parts, const std::byte* memory,
                                                     std::byte* gathered) const;

    const Job* job_;
    Index room_;  // for encoded bytes of each worker
    Pages pages_;
    std::vector<Coder> coders_;
    std::vector<Index> ends_;  // of each file so far
};

/// Completes the compressed files in the folder: writes the indices of shards, and ends each file where it ends. Sets
/// the sizes and the summed bytes of `files`, and returns the raw checksum of each. Errors: io.
[[nodiscard]] Result<std::vector<std::uint32_t>> seal(NewFiles& files, const OpenFolder& folder,
                                                      std::span<const std::uint32_t> numbers, Index workers);

}  // namespace reshard::files
