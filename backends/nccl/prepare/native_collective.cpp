#include "backends/nccl/prepare/native_collective.hpp"

#include <algorithm>

#include "backends/nccl/base/features.hpp"
#include "src/copy/copy.hpp"

namespace reshard::nccl {
namespace {

bool same_shape(const Box& a, const Box& b) { return std::ranges::equal(a, b, {}, &Interval::size, &Interval::size); }

bool all_of_one_shape(const std::vector<Box>& boxes) {
    return std::ranges::all_of(boxes, [&](const Box& box) { return same_shape(box, boxes.front()); });
}

// The one box per member, in their order. Null when a member has none or several, or a stranger has one.
std::optional<std::vector<Box>> boxes_of(const std::vector<Transfer>& transfers, const std::vector<Index>& members) {
    if (transfers.size() != members.size()) return {};
    std::vector<Box> boxes;
    for (const Index member : members) {
        const auto found = std::ranges::find(transfers, member, &Transfer::peer);
        if (found == transfers.end() || count(found->box) == 0) return {};
        boxes.push_back(found->box);
    }
    return boxes;
}

// Its own share is a receive only.
std::vector<Transfer> sends_with_own(const Schedule& schedule, const Box& own) {
    std::vector<Transfer> sends = schedule.sends;
    sends.push_back({schedule.rank, own});
    return sends;
}

const Box* own_receive(const Schedule& schedule) {
    const auto found = std::ranges::find(schedule.receives, schedule.rank, &Transfer::peer);
    return found == schedule.receives.end() ? nullptr : &found->box;
}

// In the order in which the blocks lie, so that the result may be gathered in place.
std::optional<NativeCollective> gather(const Schedule& schedule) {
    std::vector<Transfer> blocks = schedule.receives;
    std::ranges::sort(blocks, [](const Transfer& a, const Transfer& b) {
        return std::ranges::lexicographical_compare(a.box, b.box, {}, &Interval::begin, &Interval::begin);
    });
    NativeCollective made{Native::all_gather, {}, {*own_receive(schedule)}, {}};
    for (const Transfer& block : blocks) made.members.push_back(block.peer);
    auto takes = boxes_of(schedule.receives, made.members);
    if (!takes || schedule.sends.size() + 1 != blocks.size()) return {};
    made.takes = std::move(*takes);
    return made;
}

std::optional<NativeCollective> turn(const Schedule& schedule) {
    auto gives = boxes_of(sends_with_own(schedule, *own_receive(schedule)), schedule.group);
    auto takes = boxes_of(schedule.receives, schedule.group);
    if (!gives || !takes) return {};
    return NativeCollective{Native::all_to_all, schedule.group, std::move(*gives), std::move(*takes)};
}

std::optional<NativeCollective> scatter(const Schedule& schedule) {
    const Box& own = *own_receive(schedule);
    auto gives = boxes_of(sends_with_own(schedule, own), schedule.group);
    const auto takes = boxes_of(schedule.receives, schedule.group);
    const auto is_own = [&](const Box& box) { return box == own; };
    if (!gives || !takes || !std::ranges::all_of(*takes, is_own)) return {};
    return NativeCollective{Native::reduce_scatter, schedule.group, std::move(*gives), {own}};
}

std::optional<NativeCollective> reduction(const Schedule& schedule) {
    const auto in_one_run = [](const Side& side) { return side.intervals.size() == 1; };
    if (count(schedule.target_tile) == 0 || !std::ranges::all_of(schedule.target_tile, in_one_run)) return {};
    const Box box = as_box(schedule.target_tile);
    return NativeCollective{Native::all_reduce, schedule.group, {box}, {box}};
}

std::optional<NativeCollective> of_kind(const Schedule& schedule) {
    switch (schedule.kind) {
        case StepKind::all_gather:
            return gather(schedule);
        case StepKind::all_to_all:
            if (RESHARD_NCCL_HAS_ALL_TO_ALL == 0) return {};
            return turn(schedule);
        case StepKind::reduce_scatter:
            return scatter(schedule);
        case StepKind::all_reduce:
            return reduction(schedule);
        default:
            return {};
    }
}

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

std::string_view name(Native native) {
    switch (native) {
        case Native::all_gather:
            return "ncclAllGather";
        case Native::reduce_scatter:
            return "ncclReduceScatter";
        case Native::all_reduce:
            return "ncclAllReduce";
        case Native::all_to_all:
            break;
    }
    return "ncclAlltoAll";
}

std::optional<WireType> reduction_type(DType dtype, Combine combine) {
    const bool extremum = combine == Combine::max || combine == Combine::min;
    const ncclRedOp_t op = combine == Combine::max    ? ncclMax
                           : combine == Combine::min  ? ncclMin
                           : combine == Combine::prod ? ncclProd
                                                      : ncclSum;
    const auto integer = [&](ncclDataType_t type) { return WireType{type, 1, op}; };
    const auto floating = [&](ncclDataType_t type) {
        return extremum ? std::nullopt : std::optional(WireType{type, 1, op});
    };
    const auto complex = [&](ncclDataType_t type) {
        return combine == Combine::sum ? std::optional(WireType{type, 2, op}) : std::nullopt;
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

std::optional<NativeCollective> regular(const RankStep& step, DType dtype, bool ordered_sums) {
    const Schedule& schedule = step.schedule;
    if (schedule.group.size() < 2 || !schedule.fills.empty()) return {};
    const bool reduces = schedule.combine != Combine::copy;
    if (reduces && (ordered_sums || !reduction_type(dtype, schedule.combine))) return {};
    if (own_receive(schedule) == nullptr) return {};
    auto made = of_kind(schedule);
    if (!made || !all_of_one_shape(made->gives) || !all_of_one_shape(made->takes) ||
        !same_shape(made->gives.front(), made->takes.front())) {
        return {};
    }
    made->wire = reduces ? *reduction_type(dtype, schedule.combine) : WireType{ncclUint8, size_of(dtype)};
    return made;
}

bool is_direct(const NativeCollective& regular, const RankStep& step, Index element_bytes) {
    return one_run(regular.gives, step.from, element_bytes) && one_run(regular.takes, step.to, element_bytes);
}

}  // namespace reshard::nccl
