// The layouts of tensors whose indices are blocks of another tensor's indices.
#include <algorithm>

#include <fmt/format.h>

#include "reshard/text.hpp"
#include "src/base/try.hpp"
#include "src/model/rules/rule_layout.hpp"

namespace reshard::notation {

namespace {

// One dimension with its cut, as in f32[512@x].
std::string alone(const Layout& layout, std::size_t dim) {
    Layout one = layout;
    one.dims = {layout.dims[dim]};
    return format(one);
}

std::vector<Index> without_ones(std::vector<Index> extents) {
    std::erase(extents, 1);
    return extents;
}

// Returns the layout's dimension for each dimension of the tensor. The other dimensions have one index and only say who
// owns the tensor. A flattened tensor has none.
std::vector<std::size_t> own_dims(const Layout& layout, std::span<const Index> shape) {
    std::vector<std::size_t> own;
    for (std::size_t k = 0; k < layout.dims.size() && own.size() < shape.size(); ++k)
        if (layout.dims[k].extent == shape[own.size()]) own.push_back(k);
    return own.size() == shape.size() ? own : std::vector<std::size_t>{};
}

// Makes the layout of a tensor of blocks. Errors have no place.
class BlocksMaker {
public:
    BlocksMaker(const Asked& asked, const EndLayouts::BlocksTensor& of)
        : asked_(asked), of_(of), layout_(*of.layout), own_(own_dims(layout_, of.shape)) {
        layout_.dtype = asked.dtype;
    }

    Result<EndLayouts::InBlocks> make(std::span<const Index> blocks, std::optional<std::size_t> stack) {
        const std::size_t rank = layout_.dims.size();
        if (blocks.size() > 1 && blocks.size() != rank)
            return fail(Code::mismatch, fmt::format("{} numbers for a tensor of {} dimensions", blocks.size(), rank));
        for (std::size_t k = 0; k < rank; ++k) {
            const Index block = k == stack ? 1 : blocks.size() > 1 ? blocks[k] : blocks.front();
            auto made = dim_in_blocks(layout_.dims[k], parts_of(k), block, !of_.whole_blocks);
            if (!made)
                return fail(made.error().code,
                            fmt::format("dimension {}, {}, {}", k, alone(layout_, k), made.error().message));
            layout_.dims[k] = std::move(made->dim);
            blocks_.push_back(made->blocks);
            held_.push_back(std::move(made->held));
        }
        EndLayouts::InBlocks made{nullptr, asked_.shape, {}};
        const bool shared = std::ranges::any_of(held_, [](const Stretches& held) { return !held.empty(); });
        if (without_ones(blocks_) != without_ones(asked_.shape) || (shared && own_.size() != asked_.shape.size()))
            return fail(Code::mismatch, "not as many blocks as the tensor has");
        for (std::size_t i = 0; shared && i < own_.size(); ++i) {
            made.shape[i] = layout_.dims[own_[i]].extent;
            made.held.push_back(std::move(held_[own_[i]]));
        }
        made.layout = std::make_shared<const Layout>(std::move(layout_));
        return made;
    }

private:
    [[nodiscard]] std::span<const Index> parts_of(std::size_t dim) const {
        const auto own = static_cast<std::size_t>(std::ranges::find(own_, dim) - own_.begin());
        if (of_.whole_blocks || own >= of_.dim_parts.size()) return {};
        return of_.dim_parts[own];
    }

    const Asked& asked_;
    const EndLayouts::BlocksTensor& of_;
    Layout layout_;
    std::vector<std::size_t> own_;
    std::vector<Index> blocks_;    // of each dimension of the layout
    std::vector<Stretches> held_;  // the same
};

}  // namespace

Result<EndLayouts::InBlocks> EndLayouts::in_blocks(std::size_t rule, const Asked& asked, const BlocksTensor& of) {
    const Rule& line = end_.rules[rule];
    InBlocks& kept = in_blocks_[{rule, asked.dtype, asked.shape, of.layout, of.dim_parts, of.whole_blocks}];
    if (kept.layout) return kept;
    const std::vector<Index>& blocks = line.blocks->blocks;
    auto made = BlocksMaker(asked, of).make(blocks, blocks.size() == 1 ? line.stack_dim() : std::nullopt);
    if (!made) return line.line.error(made.error().code, made.error().message, line.layout_offset);
    kept = *std::move(made);
    return kept;
}

}  // namespace reshard::notation
