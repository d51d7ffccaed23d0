// Finds the boxes of a tensor that meet a box.
#pragma once

#include <algorithm>
#include <set>

#include "reshard/files/checkpoint.hpp"

namespace reshard::files {

class BoxIndex {
public:
    explicit BoxIndex(const StoredTensor& tensor) : tensor_(&tensor) {
        std::size_t most = 0;
        for (std::size_t k = 0; k < tensor.shape.size(); ++k) {
            std::set<Index> begins;
            for (const StoredBox& stored : tensor.boxes) begins.insert(stored.box[k].begin);
            if (begins.size() > most) along_ = k;
            most = std::max(most, begins.size());
        }
        for (std::uint32_t i = 0; i < tensor.boxes.size(); ++i) order_.push_back(i);
        if (tensor.shape.empty()) return;
        std::ranges::stable_sort(order_, {}, [&](std::uint32_t i) { return tensor.boxes[i].box[along_].begin; });
        for (const StoredBox& stored : tensor.boxes) longest_ = std::max(longest_, stored.box[along_].size());
    }

    /// Calls visit(stored box, its common part with `box`) for each stored box that has elements in common with `box`.
    template <class Visit>
    void meeting(const Box& box, const Visit& visit) const {
        const auto begin_of = [&](std::uint32_t i) { return tensor_->boxes[i].box[along_].begin; };
        const bool scalar = tensor_->shape.empty();
        const auto first =
            scalar ? order_.begin() : std::ranges::upper_bound(order_, box[along_].begin - longest_, {}, begin_of);
        for (auto at = first; at != order_.end(); ++at) {
            if (!scalar && begin_of(*at) >= box[along_].end) return;
            const StoredBox& stored = tensor_->boxes[*at];
            Box shared = intersect(stored.box, box);
            if (count(shared) > 0) visit(stored, std::move(shared));
        }
    }

private:
    const StoredTensor* tensor_;
    std::vector<std::uint32_t> order_;  // the boxes by their begin in one dimension
    std::size_t along_ = 0;
    Index longest_ = 0;
};

}  // namespace reshard::files
