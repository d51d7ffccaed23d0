// A job: boxes of source files become boxes of target files, in batches that fit the memory.
#pragma once

#include "files/engine/box_index.hpp"
#include "files/formats/new_files.hpp"

namespace reshard::files {

/// A box of a source tensor that becomes a box of a target tensor.
struct Move {
    std::size_t source = 0;
    std::size_t target = 0;
    Box from;
    Box to;
    /// The source dimension of each target dimension. Empty for a dimension of extent 1 that only the target has.
    std::vector<std::optional<std::size_t>> source_dims;
    std::vector<Index> source_view = {};  ///< the shape that `from` is in; empty: as stored
    std::vector<Index> target_view = {};  ///< the shape that `to` is in; empty: as stored
};

struct Job {
    Checkpoint source;
    NewFiles target;
    std::vector<Move> moves;                  ///< by target
    std::vector<std::size_t> first_move;      ///< of each target tensor, and one past the last
    std::vector<BoxIndex> source_boxes = {};  ///< of each tensor
    std::vector<BoxIndex> target_boxes = {};
    Index granule = 1;
    Index workers = 1;
};

/// Returns the dimensions of a move, or nullopt if the boxes differ in extents other than 1. `order` lists the
/// dimensions of `from` in the order of `to`; empty: as they are.
[[nodiscard]] std::optional<std::vector<std::optional<std::size_t>>> match_dims(
    const Box& from, const Box& to, std::span<const std::size_t> order = {});

/// A box of a target tensor whose bytes are in memory together.
struct Block {
    std::size_t tensor = 0;
    Box box;
};

/// The blocks that are in memory together.
using Batch = std::vector<Block>;

/// Divides the target into batches of at most `capacity` bytes, tensors in order. A tensor that does not fit is cut so
/// that few granules are touched, along the first dimension if no other cut is better. Errors: infeasible (an element
/// of all ranks does not fit).
[[nodiscard]] Result<std::vector<Batch>> make_batches(const Job& job, Index capacity);

/// Returns the bytes of the block in all target files.
[[nodiscard]] Index target_bytes(const Job& job, const Block& block);

}  // namespace reshard::files
