// Many boxes combined into one, in their order, in one pass over memory: each is read once, and what they come to is
// written once to every place that wants it. The first store of a sum and its additions meet in a few kilobytes that
// stay in the nearest cache.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard {

class MultiReduce {
public:
    /// A box in one of the memories that are named when the fold runs, by their number.
    struct Operand {
        std::size_t memory = 0;
        Region region;
    };

    /// pre: at least one summand and one target; regions of one shape; dtype and combination go together (can_reduce).
    MultiReduce(DType dtype, Combine combine, std::span<const Operand> summands, std::span<const Operand> targets);

    /// The result is combine(... combine(combine(s0, s1), s2) ...), to the bit what a store and BoxCombine make one
    /// after another. pre: no target overlaps a summand.
    void run(std::span<const std::byte* const> sources, std::span<std::byte* const> targets, Store store) const;

private:
    // One operand's way through the common loops.
    struct Walk {
        std::size_t memory = 0;
        Index offset = 0;
        std::vector<Index> strides;  // per loop
    };
    void merge();
    void add_up(std::span<const std::byte* const> from, Index elements, std::byte* sum) const;
    void run_line(std::span<const std::byte*> from, std::span<std::byte*> to, Store store) const;

    CombineLine combine_line_;
    Index element_bytes_ = 1;
    bool empty_ = false;
    std::vector<Index> extents_;  // outermost first, as the first target lies
    std::vector<Walk> summands_;
    std::vector<Walk> targets_;
};

}  // namespace reshard
