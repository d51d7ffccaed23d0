// Many boxes combined into one, in order, in one pass over memory. Each box is read once, and the result is written
// once to every place that wants it. The sum is built in a few kilobytes that stay in the nearest cache.
#pragma once

#include "src/copy/copy.hpp"

namespace reshard {

class MultiReduce {
public:
    /// A box in one of the memories that run() gets, by number.
    struct Operand {
        std::size_t memory = 0;
        Region region;
    };

    /// pre: at least one summand and one target; regions of one shape; dtype and combination fit (can_reduce).
    MultiReduce(DType dtype, Combine combine, std::span<const Operand> summands, std::span<const Operand> targets);

    /// The result is combine(... combine(combine(s0, s1), s2) ...), bit for bit as from a copy and one BoxCombine after
    /// another. It allocates nothing. pre: no target overlaps a summand.
    void run(std::span<const std::byte* const> sources, std::span<std::byte* const> targets, Store store);

private:
    // The way of one operand through the common loops.
    struct Walk {
        std::size_t memory = 0;
        Index offset = 0;
        std::vector<Index> strides;  // per loop
    };
    void merge();
    void add_up(std::span<const std::byte* const> from, Index elements, std::byte* sum) const;
    void run_line(Store store);

    CombineLine combine_line_;
    Index element_bytes_ = 1;
    bool empty_ = false;
    bool is_small_ = false;       // one line that is added up in its only target
    std::vector<Index> extents_;  // outermost first, in the order of the first target
    std::vector<Walk> summands_;
    std::vector<Walk> targets_;
    std::vector<Index> at_;               // of a run: per outer loop
    std::vector<const std::byte*> from_;  // and per summand
    std::vector<std::byte*> to_;          // and per target
};

}  // namespace reshard
