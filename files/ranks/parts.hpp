// What ranks have and files hold, part by part: who reads or writes what of each, and which parts go together.
#pragma once

#include <functional>

#include "files/engine/job.hpp"

namespace reshard::files {

/// A part of a tensor that ranks have, and the box in files that it is.
struct Part {
    std::size_t tensor = 0;                             ///< that ranks have
    std::size_t stored = 0;                             ///< in files
    Box held;                                           ///< in the indices of the tensor's layout
    Box in_file;                                        ///< in those of the stored tensor
    std::vector<std::optional<std::size_t>> file_dims;  ///< of each dimension of `held`; none where its extent is 1
    std::size_t outermost = 0;                          ///< dimension of the stored tensor, by its strides in files
    DType dtype = DType::f32;                           ///< on the ranks
};

/// Errors: mismatch (the boxes differ in other extents than 1).
[[nodiscard]] Result<Part> make_part(std::size_t tensor, std::size_t stored, Box held, Box in_file, DType dtype,
                                     const StoredTensor& files);

/// The box of the stored tensor that a box of the part is, which counts from the part's own first indices.
[[nodiscard]] Box in_file_of(const Part& part, const Box& own);

/// A part, and what each rank reads or writes of it: at most one box each, in the part's own indices.
struct SharedPart {
    Part part;
    Layout share;
};

/// Parts that are in memory together.
using Round = std::vector<SharedPart>;

/// Bytes of buffers that a rank needs for its share of a part.
using Weigh = std::function<Index(const SharedPart& shared, Index rank)>;

/// All parts in rounds of which no rank needs more than `room` bytes; those that need more are halved. A part of less
/// than `granule` bytes is one rank's, that of the least so far. Errors: infeasible (an index of a part does not fit);
/// overflow.
[[nodiscard]] Result<std::vector<Round>> rounds_of(std::vector<Part> parts, Index ranks, Index granule, Index room,
                                                   const Weigh& weigh);

/// Bytes of the rank's share.
[[nodiscard]] Index share_bytes(const SharedPart& shared, Index rank);

/// The rank's share as a tensor of a file that has it from byte `begin` on; without a box where it is empty.
[[nodiscard]] StoredTensor stored_share(const SharedPart& shared, Index rank, Index file, Index begin);

}  // namespace reshard::files
