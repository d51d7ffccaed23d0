// Steps that are NCCL's own collectives, and what a rank gives and takes in them: blocks of one shape, one for each
// member, or one for all.
#pragma once

#include <optional>

#include "backends/nccl/base/handles.hpp"

namespace reshard::nccl {

enum class Native { all_gather, reduce_scatter, all_reduce, all_to_all };

[[nodiscard]] std::string_view name(Native native);  ///< of NCCL's call

/// How NCCL sees elements: as bytes where they only move, as numbers where they are added.
struct WireType {
    ncclDataType_t type;
    Index elements;  ///< of `type` in one element
    ncclRedOp_t op = ncclSum;
};

/// Null where NCCL has no such reduction: bool, integers of 16 bits, products of complex numbers; and max and min of
/// floats, for which NCCL does not say what becomes of NaN.
[[nodiscard]] std::optional<WireType> reduction_type(DType dtype, Combine combine);

struct NativeCollective {
    Native native = Native::all_gather;
    std::vector<Index> members;  ///< in the order of the communicator
    std::vector<Box> gives;      ///< of the source tile, one per member or one
    std::vector<Box> takes;      ///< of the target tile, one per member or one
    WireType wire{ncclUint8, 1};
};

/// Null when the step is no native collective on this rank. The members must agree on whether it is one.
[[nodiscard]] std::optional<NativeCollective> regular(const RankStep& step, DType dtype, bool ordered_sums);

/// True when the call goes straight from and to the tiles, without staging.
[[nodiscard]] bool is_direct(const NativeCollective& regular, const RankStep& step, Index element_bytes);

}  // namespace reshard::nccl
