// The tiles of tensors on a rank: given by a caller, or new.
#pragma once

#include "files/formats/new_files.hpp"
#include "files/ranks/exchange.hpp"
#include "reshard/files/load.hpp"

namespace reshard::files {

/// Returns the tensors as a list. Errors: mismatch (a name is there twice).
[[nodiscard]] Result<std::vector<ListedTensor>> list_of(std::span<const SavedTile> tiles);
/// Returns the list as text.
[[nodiscard]] std::string text_of(std::span<const SavedTile> tiles);

/// Returns this rank's tiles, as the rules place them: `sources` has one for each. They are only read. Errors: mismatch
/// (a tile of another size, too few ranks).
[[nodiscard]] Result<std::vector<RankTensor>> tensors_of(std::span<const SavedTile> tiles,
                                                         std::span<const ShardedTensor> sources,
                                                         const Backend& backend);

/// Gives the layout of each target its type. Errors: mismatch (too few ranks).
[[nodiscard]] Result<void> place_targets(std::span<NewTensor> targets, const Backend& backend);

/// Returns this rank's tiles of the targets in memory of the backend. Padded ones are filled with zeros. Errors:
/// backend.
[[nodiscard]] Result<Loaded> allocated(Backend& backend, std::span<const NewTensor> targets);

}  // namespace reshard::files
