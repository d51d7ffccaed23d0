#include "backends/nccl/prepare/buffer_pieces.hpp"

#include <algorithm>

namespace reshard::nccl {
namespace {

void cut_into(const Box& box, Index elements_max, std::vector<Box>& parts) {
    const Index elements = count(box);
    if (elements <= elements_max) {
        parts.push_back(box);
        return;
    }
    std::size_t outer = 0;
    while (box[outer].size() == 1) ++outer;
    const Index rows = std::max<Index>(1, elements_max / (elements / box[outer].size()));
    for (Index begin = box[outer].begin; begin < box[outer].end; begin += rows) {
        Box part = box;
        part[outer] = {begin, std::min(begin + rows, box[outer].end)};
        cut_into(part, elements_max, parts);
    }
}

}  // namespace

std::vector<Box> cut(const Box& box, Index elements_max) {
    std::vector<Box> parts;
    if (count(box) > 0) cut_into(box, std::max<Index>(1, elements_max), parts);
    return parts;
}

std::vector<std::vector<Box>> pieces_of(const std::vector<Box>& boxes, Index elements_max) {
    std::vector<std::vector<Box>> pieces;
    Index filled = 0;
    for (const Box& box : boxes) {
        for (Box& part : cut(box, elements_max)) {
            const Index elements = count(part);
            if (pieces.empty() || filled + elements > elements_max) {
                pieces.emplace_back();
                filled = 0;
            }
            filled += elements;
            pieces.back().push_back(std::move(part));
        }
    }
    return pieces;
}

}  // namespace reshard::nccl
