// What load and save have in common: a question that all ranks ask, and what a rank may use.
#pragma once

#include "files/formats/safetensors.hpp"
#include "files/formats/tile_boxes.hpp"
#include "files/ranks/company.hpp"
#include "files/ranks/exchange.hpp"

namespace reshard::files {

/// The hash with the text in it.
[[nodiscard]] std::uint64_t mixed(std::uint64_t hash, std::string_view text);
/// Of what all ranks bring alike.
[[nodiscard]] std::uint64_t number_of(const ConvertOptions& options, std::string_view more);

/// Errors: unsupported.
[[nodiscard]] Result<void> host_only(const Backend& backend);
/// Errors: mismatch.
[[nodiscard]] Result<void> enough_ranks(const Backend& backend, const Layout& layout);

/// The layout of another element type.
[[nodiscard]] std::shared_ptr<const Layout> in_dtype(const std::shared_ptr<const Layout>& layout, DType dtype);

/// Threads of this rank.
[[nodiscard]] Index workers_of(const ConvertOptions& options, const Backend& backend);
/// What a worker reads at once.
[[nodiscard]] Index stretch_bytes_of(Index memory);
/// What `memory` leaves for shares. Errors: infeasible.
[[nodiscard]] Result<Index> room_of(Index memory, Index stretch_bytes, const ConvertOptions& options,
                                    const Backend& backend);

}  // namespace reshard::files
