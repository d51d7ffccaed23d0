#include "backends/nccl/prepare/buffer_pieces.hpp"

#include "src/schedule/box_cut.hpp"

namespace reshard::nccl {

std::vector<std::vector<Box>> pieces_of(const std::vector<Box>& boxes, Index elements_max) {
    std::vector<std::vector<Box>> pieces;
    Index filled = 0;
    for (const Box& box : boxes) {
        for (Box& part : slabs(box, elements_max)) {
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
