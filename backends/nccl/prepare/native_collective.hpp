// Which steps are collectives of NCCL's own.
#pragma once

#include <optional>

#include "backends/nccl/base/handles.hpp"
#include "src/schedule/native_collective.hpp"

namespace reshard::nccl {

[[nodiscard]] std::string_view call_name(StepKind native);  ///< NCCL's

/// How NCCL sees elements: as bytes where they only move, as numbers where they are added.
struct NcclType {
    ncclDataType_t type;
    Index elements;  ///< of `type` in one element
    ncclRedOp_t op = ncclSum;
};

/// Null where NCCL has no such reduction: bool, integers of 16 bits, products of complex numbers; and max and min of
/// floats, for which NCCL does not say what becomes of NaN.
[[nodiscard]] std::optional<NcclType> reduction_type(DType dtype, Combine combine);

struct NcclCollective : NativeCollective {
    NcclType as{ncclUint8, 1};
};

/// Null when the step is none on this rank. Whether it is one at all the members must agree.
[[nodiscard]] std::optional<NcclCollective> regular(const RankStep& step, DType dtype, bool ordered_sums);

/// Can the call go straight from and to the tiles, without staging?
[[nodiscard]] bool is_direct(const NcclCollective& regular, const RankStep& step, Index element_bytes);

}  // namespace reshard::nccl
