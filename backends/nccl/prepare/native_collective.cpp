#include "backends/nccl/prepare/native_collective.hpp"

#include <algorithm>

#include "backends/nccl/base/features.hpp"
#include "src/copy/copy.hpp"

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
        default:
            return "ncclAlltoAll";
    }
}

std::optional<NcclType> reduction_type(DType dtype, Combine combine) {
    const bool extremum = combine == Combine::max || combine == Combine::min;
    const ncclRedOp_t op = combine == Combine::max    ? ncclMax
                           : combine == Combine::min  ? ncclMin
                           : combine == Combine::prod ? ncclProd
                                                      : ncclSum;
    const auto integer = [&](ncclDataType_t type) { return NcclType{type, 1, op}; };
    const auto floating = [&](ncclDataType_t type) {
        return extremum ? std::nullopt : std::optional(NcclType{type, 1, op});
    };
    const auto complex = [&](ncclDataType_t type) {
        return combine == Combine::sum ? std::optional(NcclType{type, 2, op}) : std::nullopt;
    };
    switch (dtype) {
        case DType::i8:
            return integer(ncclInt8);
        case DType::u8:
            return integer(ncclUint8);
        case DType::i32:
            return integer(ncclInt32);
        case DType::u32:
            return integer(ncclUint32);
        case DType::i64:
            return integer(ncclInt64);
        case DType::u64:
            return integer(ncclUint64);
        case DType::f16:
            return floating(ncclFloat16);
        case DType::bf16:
            return floating(ncclBfloat16);
        case DType::f32:
            return floating(ncclFloat32);
        case DType::f64:
            return floating(ncclFloat64);
        case DType::c64:
            return complex(ncclFloat32);
        case DType::c128:
            return complex(ncclFloat64);
        default:
            return {};
    }
}

std::optional<NcclCollective> regular(const RankStep& step, DType dtype, bool ordered_sums) {
    const Schedule& schedule = step.schedule;
    if (schedule.kind == StepKind::all_to_all && RESHARD_NCCL_HAS_ALL_TO_ALL == 0) return {};
    NcclType as{ncclUint8, size_of(dtype)};
    if (schedule.combine != Combine::copy) {
        const auto number = reduction_type(dtype, schedule.combine);
        if (ordered_sums || !number) return {};
        as = *number;
    }
    auto made = native_collective(schedule);
    if (!made) return {};
    return NcclCollective{std::move(*made), as};
}

bool is_direct(const NcclCollective& regular, const RankStep& step, Index element_bytes) {
    return one_run(regular.gives, step.from, element_bytes) && one_run(regular.takes, step.to, element_bytes);
}

}  // namespace reshard::nccl
