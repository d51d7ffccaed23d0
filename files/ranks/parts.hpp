// The parts of tensors that move between ranks and files. They say which rank reads or writes which share, and which
// parts move together.
#pragma once

#include <functional>

#include "files/engine/job.hpp"

namespace reshard::files {

/// A part of a tensor on ranks, and its box in files.
struct Part {
    std::size_t tensor = 0;                             ///< on the ranks
    std::size_t stored = 0;                             ///< in files
    Box held;                                           ///< in indices of the tensor's layout
    Box in_file;                                        ///< in indices of the stored tensor
    std::vector<std::optional<std::size_t>> file_dims;  ///< by dimension of `held`; empty if its extent is 1
    std::size_t outermost = 0;                          ///< dimension of the stored tensor, by its strides in files
    DType dtype = DType::f32;                           ///< on the ranks
    std::shared_ptr<const Layout> layout;               ///< on the ranks; a view of the tensor's, or the same
    std::vector<Index> file_view = {};                  ///< the shape that `in_file` is in; empty: as stored
    std::vector<std::size_t> order = {};                ///< of dimensions of `held` in files; empty: as they are
};

/// The part of a move whose tensor on ranks is its target (`loads`) or its source. `on_ranks` has the layout there.
/// Errors: mismatch (the boxes differ in extents other than 1).
[[nodiscard]] Result<Part> make_part(const Move& move, const PartProblem& problem, bool loads, DType dtype,
                                     const StoredTensor& files);

/// Returns the box of the stored tensor for a box of the part. The latter counts from the part's first indices.
[[nodiscard]] Box in_file_of(const Part& part, const Box& own);

/// A part, and the share that each rank reads or writes: at most one box each, in the part's own indices.
struct SharedPart {
    Part part;
    Layout share;
};

/// Parts that are in memory together.
using Round = std::vector<SharedPart>;

/// Returns the bytes of buffers that a rank needs for its share of a part.
using Weigh = std::function<Index(const SharedPart& shared, Index rank)>;

/// Divides the parts into rounds. No rank needs more than `room` bytes in a round. Larger parts are halved. A part of
/// less than `granule` bytes goes to one rank, the one with the fewest bytes so far. Errors: infeasible (an index of a
/// part does not fit); overflow.
[[nodiscard]] Result<std::vector<Round>> rounds_of(std::vector<Part> parts, Index ranks, Index granule, Index room,
                                                   const Weigh& weigh);

/// Returns the bytes of the rank's share.
[[nodiscard]] Index share_bytes(const SharedPart& shared, Index rank);

/// Returns the rank's share as a tensor in a file, from byte `begin` on. An empty share has no box.
[[nodiscard]] StoredTensor stored_share(const SharedPart& shared, Index rank, Index file, Index begin);

}  // namespace reshard::files
