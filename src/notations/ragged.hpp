// Shards of any size in placements: veScale's RaggedShard and the per-rank shapes of PhysicsNeMo's ShardTensor.
#pragma once

#include <map>
#include <optional>

#include "reshard/layout.hpp"
#include "src/text/scanner.hpp"

namespace reshard::notation {

/// RaggedShard: the leading dimensions count as one, and rank i gets units[i] of all its units.
struct Ragged {
    std::size_t dims = 1;      ///< how many lead
    std::vector<Index> units;  ///< relative, zeros allowed
};

/// "(" ["dims" "="] tuple "," ["local_units" "="] tuple ")", behind the word. Errors: syntax, layout (other dims than
/// 0, 1, ...), unsupported (no unit at all).
[[nodiscard]] Result<Ragged> scan_ragged(Scanner& scanner, std::size_t rank);

/// Local shapes by mesh axis, one for each rank along it.
using ShardShapes = std::map<std::size_t, std::vector<std::vector<Index>>>;

/// "{" axis ":" tuple of shapes {"," ...} "}"; a shape is a tuple, or torch.Size of one. Errors: syntax, layout
/// (another number of dimensions).
[[nodiscard]] Result<ShardShapes> scan_shard_shapes(Scanner& scanner, std::size_t rank);

/// A shape: a tuple, or torch.Size of one. Errors: syntax, layout (another number of dimensions).
[[nodiscard]] Result<std::vector<Index>> scan_shape(Scanner& scanner, std::size_t rank);

/// The indices of each shard where shards follow each other in order; nullopt where they do not.
[[nodiscard]] std::optional<std::vector<Index>> shares_in_order(const Dim& dim);

/// An axis that cuts dimension d into these shares: a RaggedShard, which cuts the leading dimension and stands before
/// all that do not replicate, or else a Shard, with its shapes appended to `shapes`.
[[nodiscard]] std::string word_of_shares(const Layout& layout, std::size_t d, std::size_t axis,
                                         std::vector<Index> shares, bool stands_first, std::string& shapes);

}  // namespace reshard::notation
