#include "src/model/rules/shared_blocks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/try.hpp"
#include "src/model/rules/part_cut.hpp"

namespace reshard::notation {

namespace {

// Makes a dimension of blocks from the pieces of the dimension of indices, in ascending order.
class BlockPieces {
public:
    BlockPieces(const AtomList& atoms, Index block, bool may_share) : block_(block), may_share_(may_share) {
        made_.dim.atoms = atoms;
    }

    // Adds indices of the part that begins at index `part`. The blocks of the part begin at `first`.
    Result<void> add(Interval indices, Index shard, Index part, Index first) {
        const Interval blocks = {first + (indices.begin - part) / block_,
                                 first + ceil_divide(indices.end - part, block_)};
        const bool shared = blocks.begin == last_;
        const bool twice = shared && std::ranges::find(sharers_, shard) != sharers_.end();
        if (twice || (shared && !may_share_))
            return fail(Code::layout, fmt::format("is cut at {}, within a block of {}{}", indices.begin, block_,
                                                  twice ? " that one shard would hold twice" : ""));
        if (!shared || blocks.end - 1 != last_) sharers_.clear();
        sharers_.push_back(shard);
        last_ = blocks.end - 1;
        any_shared_ = any_shared_ || shared;
        made_.held.push_back({blocks, made_.dim.extent});
        made_.dim.extent += blocks.size();
        made_.dim.pieces.push_back({made_.dim.extent, shard});
        return {};
    }

    BlockDim made(Index blocks) {
        made_.blocks = blocks;
        if (!any_shared_) made_.held.clear();
        make_canonical(made_.dim);
        return std::move(made_);
    }

private:
    Index block_ = 1;
    bool may_share_ = false;
    Index last_ = -1;             // the last block so far
    std::vector<Index> sharers_;  // the shards that hold it
    bool any_shared_ = false;
    BlockDim made_;
};

}  // namespace

Result<BlockDim> dim_in_blocks(const Dim& dim, std::span<const Index> parts, Index block, bool may_share) {
    const Index whole[] = {dim.extent};
    if (parts.empty()) parts = whole;
    Index blocks = 0;
    for (const Index part : parts) blocks += ceil_divide(part, block);
    if (dim.atoms.empty()) return BlockDim{Dim(blocks), blocks, {}};
    if (shard_count(dim) > layout_pieces_max)
        return fail(Code::unsupported, "has too many shards to look at one by one");
    BlockPieces made(dim.atoms, block, may_share);
    std::size_t part = 0;
    Index part_begin = 0;
    Index first = 0;
    Index begin = 0;
    for (const Dim::Piece& piece : pieces_of(dim)) {
        // A piece may reach over the end of a part.
        while (begin < piece.end) {
            while (begin == part_begin + parts[part]) {
                first += ceil_divide(parts[part], block);
                part_begin += parts[part++];
            }
            const Index end = std::min(piece.end, part_begin + parts[part]);
            RESHARD_CHECK(made.add({begin, end}, piece.shard, part_begin, first));
            begin = end;
        }
    }
    return made.made(blocks);
}

Stretches once_each(const Stretches& held) {
    Stretches once;
    Index end = 0;  // of the indices so far
    for (const Stretch& one : held) {
        const Index skipped = std::max<Index>(end - one.indices.begin, 0);
        if (skipped >= one.indices.size()) continue;
        end = one.indices.end;
        const Stretch fresh = {{one.indices.begin + skipped, end}, one.begin + skipped};
        if (!once.empty() && once.back().begin + once.back().indices.size() == fresh.begin)
            once.back().indices.end = end;
        else
            once.push_back(fresh);
    }
    return once;
}

}  // namespace reshard::notation

namespace reshard {

std::vector<Index> held_shape(const ShardedTensor& tensor) {
    std::vector<Index> held = tensor.shape;
    for (std::size_t k = 0; k < tensor.held.size(); ++k)
        if (const auto& stretches = tensor.held[k]; !stretches.empty())
            held[k] = stretches.back().begin + stretches.back().indices.size();
    return held;
}

}  // namespace reshard
