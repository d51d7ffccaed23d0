#include "src/schedule/box_cut.hpp"

#include <algorithm>

namespace reshard {

Slabs::Slabs(const Box& box, Index elements_max) : box_(box), slab_(box) {
    const Index most = std::max<Index>(elements_max, 1);
    Index row = count(box);  // elements of one index of the dimension that is cut
    if (row == 0) parts_ = 0;
    if (row == 0 || box.empty()) return;
    while ((row /= box[cut_].size()) > most) ++cut_;
    parts_ = ceil_divide(box[cut_].size(), std::min(box[cut_].size(), most / row));
    for (std::size_t k = 0; k < cut_; ++k) slab_[k].end = slab_[k].begin + 1;
}

Interval Slabs::part(Index number) const {
    const Interval& whole = box_[cut_];
    const auto border = [&](Index at) {
        return whole.begin + whole.size() / parts_ * at + std::min(at, whole.size() % parts_);
    };
    return {border(number), border(number + 1)};
}

// False when all dimensions before the one that is cut have come round.
bool Slabs::next_outer() {
    for (std::size_t k = cut_; k-- > 0;) {
        slab_[k] = {slab_[k].end, slab_[k].end + 1};
        if (slab_[k].end <= box_[k].end) return true;
        slab_[k] = {box_[k].begin, box_[k].begin + 1};
    }
    return false;
}

const Box* Slabs::next() {
    if (number_ == parts_) {
        if (!next_outer()) parts_ = 0;
        number_ = 0;
    }
    if (parts_ == 0) return nullptr;
    if (!box_.empty()) slab_[cut_] = part(number_);
    ++number_;
    return &slab_;
}

std::vector<Box> slabs(const Box& box, Index elements_max) {
    std::vector<Box> all;
    Slabs cut(box, elements_max);
    while (const Box* slab = cut.next()) all.push_back(*slab);
    return all;
}

}  // namespace reshard
