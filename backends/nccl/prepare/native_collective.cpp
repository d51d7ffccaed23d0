#include "backends/nccl/prepare/native_collective.hpp"

#include <algorithm>
#include <array>

#include "backends/nccl/base/features.hpp"
#include "src/copy/copy.hpp"
#include "src/tables/dtypes.hpp"

namespace reshard::nccl {
namespace {

bool one_run(const std::vector<Box>& boxes, const Slot& slot, Index element_bytes) {
    const Region first = region_of(slot, boxes.front(), element_bytes);
    Index expected = first.offset_bytes;
    for (const Box& box : boxes) {
        const Region region = region_of(slot, box, element_bytes);
        if (!contiguous(region) || region.offset_bytes != expected) return false;
        expected += bytes_of(region);
    }
    return true;
}

}  // namespace

std::string_view call_name(StepKind native) {
    switch (native) {
        case StepKind::all_gather:
            return "ncclAllGather";
        case StepKind::reduce_scatter:
            return "ncclReduceScatter";
        case StepKind::all_reduce:
            return "ncclAllReduce";
        case StepKind::all_to_all:
            return "ncclAlltoAll";
        case StepKind::slice:
        case StepKind::permute:
        case StepKind::zero_fill:
        case StepKind::exchange:
        case StepKind::view:
        case StepKind::cast:
            break;  // these run as sends and receives
    }
    return {};
}

std::optional<NcclType> reduction_type(DType dtype, Combine combine) {
    constexpr std::array types = {
#define X(dtype, Element, mpi, nccl, ...) nccl,
        RESHARD_DTYPES(X, X)
#undef X
    };
    constexpr std::array operations = {ncclSum, ncclSum, ncclMax, ncclMin, ncclProd};  // by Combine
    static_assert(operations[static_cast<std::size_t>(Combine::sum)] == ncclSum &&
                  operations[static_cast<std::size_t>(Combine::max)] == ncclMax &&
                  operations[static_cast<std::size_t>(Combine::min)] == ncclMin &&
                  operations[static_cast<std::size_t>(Combine::prod)] == ncclProd);
    const auto type = types[static_cast<std::size_t>(dtype)];
    if (type == ncclNumTypes) return {};
    const bool extremum = combine == Combine::max || combine == Combine::min;
    if (is_floating(dtype) && extremum) return {};
    if (is_complex(dtype) && combine != Combine::sum) return {};
    return NcclType{type, is_complex(dtype) ? 2 : 1, operations[static_cast<std::size_t>(combine)]};
}

std::optional<NcclCollective> regular(const RankStep& step, bool ordered_sums) {
    const Schedule& schedule = step.schedule;
    if (schedule.kind == StepKind::all_to_all && RESHARD_NCCL_HAS_ALL_TO_ALL == 0) return {};
    NcclType as{ncclUint8, size_of(sent_dtype(step))};
    if (schedule.combine != Combine::copy) {
        const auto number = reduction_type(step.to_dtype, schedule.combine);
        if (ordered_sums || !number) return {};
        as = *number;
    }
    auto made = native_collective(schedule);
    if (!made) return {};
    return NcclCollective{std::move(*made), as};
}

bool is_direct(const NcclCollective& regular, const RankStep& step) {
    const Index element_bytes = size_of(step.from_dtype);
    return !casts(step) && one_run(regular.gives, step.from, element_bytes) &&
           one_run(regular.takes, step.to, element_bytes);
}

}  // namespace reshard::nccl
