// Finds the steps that are collectives of NCCL's own.
#pragma once

#include <optional>

#include "backends/nccl/base/handles.hpp"
#include "src/schedule/native_collective.hpp"

namespace reshard::nccl {

[[nodiscard]] std::string_view call_name(StepKind native);  ///< as NCCL calls it

/// How NCCL sees elements: as bytes if they only move, as numbers if they are added.
struct NcclType {
    ncclDataType_t type;
    Index elements;  ///< of `type` in one element
    ncclRedOp_t op = ncclSum;
};

/// Empty if NCCL has no such reduction: bool, integers of 16 bits, and products of complex numbers. Also empty for max
/// and min of floats, since NCCL does not say how it treats NaN.
[[nodiscard]] std::optional<NcclType> reduction_type(DType dtype, Combine combine);

struct NcclCollective : NativeCollective {
    NcclType as{ncclUint8, 1};
};

/// Empty if the step is no collective on this rank. If it is one, all members must still agree on it.
[[nodiscard]] std::optional<NcclCollective> regular(const RankStep& step, bool ordered_sums);

/// Whether the call can read and write the tiles themselves, without staging. A step that casts stages.
[[nodiscard]] bool is_direct(const NcclCollective& regular, const RankStep& step);

}  // namespace reshard::nccl
