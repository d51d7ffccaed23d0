// The steps that are native collectives of NCCL.
#pragma once

#include <optional>

#include "backends/nccl/base/handles.hpp"
#include "src/schedule/native_collective.hpp"

namespace reshard::nccl {

[[nodiscard]] std::string_view call_name(StepKind native);  ///< in NCCL

/// Elements in NCCL: bytes if they only move, numbers if they are added.
struct NcclType {
    ncclDataType_t type;
    Index elements;  ///< how many of `type` are in one element
    ncclRedOp_t op = ncclSum;
};

/// Null if NCCL has no such reduction: bool, integers of 16 bits, and products of complex numbers. Also null for max
/// and min of floats, because NCCL does not define the result for NaN.
[[nodiscard]] std::optional<NcclType> reduction_type(DType dtype, Combine combine);

struct NcclCollective : NativeCollective {
    NcclType as{ncclUint8, 1};
};

/// Null if the step is no collective on this rank. The members must agree whether it is one.
[[nodiscard]] std::optional<NcclCollective> regular(const RankStep& step, DType dtype, bool ordered_sums);

/// True if the call can read and write the tiles directly, without staging.
[[nodiscard]] bool is_direct(const NcclCollective& regular, const RankStep& step, Index element_bytes);

}  // namespace reshard::nccl
