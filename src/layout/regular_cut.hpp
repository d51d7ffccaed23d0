// Cuts of a dimension that need no list: ceil-div and balanced ones. Each shard has one interval, and shards ascend.
#pragma once

#include <algorithm>

#include "reshard/layout.hpp"

namespace reshard {

/// A cut into shards of `size` indices up to `border`, and of `size` - 1 after it. Under ceil-div the border is the
/// extent, and the last shards are short or empty.
class RegularCut {
public:
    RegularCut() = default;
    /// The cut of a dimension without pieces.
    explicit RegularCut(const Dim& dim) : extent_(dim.extent), border_(dim.extent) {
        const Index shards = shard_count(dim);
        size_ = std::max<Index>(ceil_divide(extent_, shards), 1);
        if (dim.balanced && extent_ % shards > 0) border_ = extent_ % shards * size_;
    }

    /// The indices of a shard.
    [[nodiscard]] Interval at(Index shard) const {
        if (border_ == extent_ || (shard + 1) * size_ <= border_) return block(extent_, size_, shard);
        const Index begin = shard * size_ - (shard - border_ / size_);
        return {begin, begin + size_ - 1};
    }
    /// The shard of an index. pre: the index is in the dimension.
    [[nodiscard]] Index shard_of(Index index) const {
        return index < border_ ? index / size_ : border_ / size_ + (index - border_) / (size_ - 1);
    }

private:
    Index extent_ = 0;
    Index size_ = 1;
    Index border_ = 0;
};

}  // namespace reshard
