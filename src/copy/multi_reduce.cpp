#include "src/copy/multi_reduce.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace reshard {
namespace {

constexpr Index sum_bytes = Index{16} << 10;  // added up at once: fits the nearest cache with a line of a summand

// The dimensions with more than one element, in the order of `region` in memory.
std::vector<std::size_t> order_of(const Region& region) {
    std::vector<std::size_t> dims;
    for (std::size_t k = 0; k < region.extents.size(); ++k) {
        if (region.extents[k] != 1) dims.push_back(k);
    }
    std::ranges::stable_sort(dims, std::ranges::greater(), [&](std::size_t k) { return region.strides_bytes[k]; });
    return dims;
}

}  // namespace

MultiReduce::MultiReduce(DType dtype, Combine combine, std::span<const Operand> summands,
                         std::span<const Operand> targets)
    : combine_line_(combine_line_of(dtype, combine)), element_bytes_(size_of(dtype)) {
    const Region& shape = targets.front().region;
    const std::vector<std::size_t> dims = order_of(shape);
    for (const std::size_t k : dims) extents_.push_back(shape.extents[k]);
    empty_ = std::ranges::find(extents_, 0) != extents_.end();
    const auto walks_of = [&](std::span<const Operand> operands, std::vector<Walk>& walks) {
        for (const Operand& operand : operands) {
            walks.push_back({operand.memory, operand.region.offset_bytes, {}});
            for (const std::size_t k : dims) walks.back().strides.push_back(operand.region.strides_bytes[k]);
        }
    };
    walks_of(summands, summands_);
    walks_of(targets, targets_);
    merge();
    at_.resize(extents_.size() - 1);
    from_.resize(summands_.size());
    to_.resize(targets_.size());
    is_small_ = at_.empty() && targets_.size() == 1 && targets_.front().strides.front() == element_bytes_ &&
                extents_.front() * element_bytes_ <= sum_bytes;
}

// Merges loops that continue each other in all operands. At least one loop stays.
void MultiReduce::merge() {
    const auto continues = [&](const std::vector<Walk>& walks, std::size_t i) {
        return std::ranges::all_of(
            walks, [&](const Walk& walk) { return walk.strides[i - 1] == walk.strides[i] * extents_[i]; });
    };
    for (std::size_t i = extents_.size(); i-- > 1;) {
        if (!continues(summands_, i) || !continues(targets_, i)) continue;
        extents_[i] *= extents_[i - 1];
        const auto outer = static_cast<std::ptrdiff_t>(i) - 1;
        extents_.erase(extents_.begin() + outer);
        for (auto* walks : {&summands_, &targets_}) {
            for (Walk& walk : *walks) walk.strides.erase(walk.strides.begin() + outer);
        }
    }
    if (!extents_.empty()) return;
    extents_.push_back(1);
    for (auto* walks : {&summands_, &targets_}) {
        for (Walk& walk : *walks) walk.strides.push_back(element_bytes_);
    }
}

void MultiReduce::add_up(std::span<const std::byte* const> from, Index elements, std::byte* sum) const {
    if (const Index first = summands_.front().strides.back(); first == element_bytes_)
        std::memcpy(sum, from.front(), static_cast<std::size_t>(elements * element_bytes_));
    else
        copy_kernels().rows[static_cast<std::size_t>(Store::cached)]({elements, element_bytes_, first, element_bytes_},
                                                                     from.front(), sum);
    for (std::size_t i = 1; i < summands_.size(); ++i) {
        combine_line_({elements, summands_[i].strides.back(), element_bytes_}, from[i], sum);
    }
}

// Runs the innermost loop, each time as much as fits the sum. Moves the operands along.
void MultiReduce::run_line(Store store) {
    alignas(64) std::array<std::byte, sum_bytes> sum;
    const auto rows = copy_kernels().rows[static_cast<std::size_t>(store)];
    for (Index left = extents_.back(); left > 0;) {
        const Index now = std::min(left, sum_bytes / element_bytes_);
        left -= now;
        add_up(from_, now, sum.data());
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            const Index stride = targets_[i].strides.back();
            rows(stride == element_bytes_ ? Rows{1, now * element_bytes_, 0, 0}
                                          : Rows{now, element_bytes_, element_bytes_, stride},
                 sum.data(), to_[i]);
            to_[i] += now * stride;
        }
        for (std::size_t i = 0; i < summands_.size(); ++i) from_[i] += now * summands_[i].strides.back();
    }
}

void MultiReduce::run(std::span<const std::byte* const> sources, std::span<std::byte* const> targets, Store store) {
    if (empty_) return;
    if (is_small_ && store == Store::cached) {
        for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = sources[summands_[i].memory] + summands_[i].offset;
        return add_up(from_, extents_.front(), targets[targets_.front().memory] + targets_.front().offset);
    }
    const std::span<const Index> outer = std::span(extents_).first(extents_.size() - 1);
    const auto offset = [&](const Walk& walk) {
        return std::inner_product(at_.begin(), at_.end(), walk.strides.begin(), walk.offset);
    };
    while (true) {
        for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = sources[summands_[i].memory] + offset(summands_[i]);
        for (std::size_t i = 0; i < to_.size(); ++i) to_[i] = targets[targets_[i].memory] + offset(targets_[i]);
        run_line(store);
        std::size_t k = at_.size();
        while (k > 0 && ++at_[k - 1] == outer[k - 1]) at_[--k] = 0;
        if (k == 0) return;
    }
}

}  // namespace reshard
