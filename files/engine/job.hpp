// A job: boxes of source files that become boxes of target files, and how they are grouped into batches that fit the
// memory.
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
    /// Of each dimension of the target that of the source; none where only the target has it, with extent 1.
    std::vector<std::optional<std::size_t>> source_dims;
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

/// The dimensions of a move; nullopt when the boxes differ in other extents than 1.
[[nodiscard]] std::optional<std::vector<std::optional<std::size_t>>> match_dims(const Box& from, const Box& to);

/// A box of a target tensor whose bytes are in memory together.
struct Block {
    std::size_t tensor = 0;
    Box box;
};

/// What the memory holds at once.
using Batch = std::vector<Block>;

/// All of the target, each byte in one batch, none of more than `capacity` bytes: tensors in order, those that do not
/// fit cut so that few granules are touched, along the first dimension where that is as good as any. Errors: infeasible
/// (an element of all ranks does not fit).
[[nodiscard]] Result<std::vector<Batch>> make_batches(const Job& job, Index capacity);

/// Bytes that the block has in all target files.
[[nodiscard]] Index target_bytes(const Job& job, const Block& block);

}  // namespace reshard::files
