// Combines many boxes into one, in their order, in one pass over memory. Each box is read once, and the result is
// written once to every place that wants it. The partial result stays in a few kilobytes of the nearest cache.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard {

class MultiReduce {
public:
    /// A box in one of the memories. The fold names the memories by number when it runs.
    struct Operand {
        std::size_t memory = 0;
        Region region;
    };

    /// pre: at least one summand and one target; regions of one shape; dtype and combination go together (can_reduce).
    MultiReduce(DType dtype, Combine combine, std::span<const Operand> summands, std::span<const Operand> targets);

    /// The result is combine(... combine(combine(s0, s1), s2) ...). It has the same bits as a store and one BoxCombine
    /// after another. pre: no target overlaps a summand.
    void run(std::span<const std::byte* const> sources, std::span<std::byte* const> targets, Store store) const;

private:
    // The path of one operand through the common loops.
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
