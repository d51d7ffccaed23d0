// The steps that load and save share: the question, which must be the same on all ranks, and a rank's resources.
#pragma once

#include "files/engine/checksums.hpp"
#include "files/formats/safetensors.hpp"
#include "files/formats/tile_boxes.hpp"
#include "files/ranks/company.hpp"
#include "files/ranks/exchange.hpp"
#include "src/base/hash.hpp"

namespace reshard::files {

/// Adds a text and a byte that ends it.
void add_text(Hash& hash, std::string_view text);
/// Hashes the options, which must be the same on all ranks, and another text.
[[nodiscard]] Hash hash_of(const ConvertOptions& options, std::string_view more);
/// Adds the options that say how a job is done. They must be the same on all ranks, too.
void add_manner(Hash& hash, const ConvertOptions& options);

/// Collective. Reads the summed bytes again, each rank its part, and compares their raw sums. Errors, on all ranks: io.
[[nodiscard]] Result<void> read_again(Company& company, const SummedFiles& files, std::span<const std::uint32_t> sums,
                                      const ConvertOptions& options);

/// Errors: unsupported.
[[nodiscard]] Result<void> host_only(const Backend& backend);
/// Errors: mismatch.
[[nodiscard]] Result<void> enough_ranks(const Backend& backend, const Layout& layout);

/// Returns the layout with another element type.
[[nodiscard]] std::shared_ptr<const Layout> in_dtype(const std::shared_ptr<const Layout>& layout, DType dtype);

/// Returns the threads of this rank.
[[nodiscard]] Index workers_of(const ConvertOptions& options, const Backend& backend);
/// Returns the bytes that a worker reads at once.
[[nodiscard]] Index stretch_bytes_of(Index memory);
/// Returns the bytes of a rank's shares in a round: what `memory` leaves, and 64 MiB at most. Errors: infeasible.
[[nodiscard]] Result<Index> room_of(Index memory, Index stretch_bytes, const ConvertOptions& options,
                                    const Backend& backend);

}  // namespace reshard::files
