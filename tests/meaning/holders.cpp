#include "meaning/holders.hpp"

#include <algorithm>

namespace reshard::test {

namespace {

Index ceiling(Index a, Index b) { return (a + b - 1) / b; }

/// The owner of an index if each axis in turn cuts the remaining chunk.
Index owner_by_turns(const DraftDim& dim, Index index) {
    Index begin = 0;
    Index size = dim.extent;
    Index shard = 0;
    for (const Part& part : dim.parts) {
        const Index chunk = ceiling(size, part.size);
        const Index which = (index - begin) / chunk;
        begin += which * chunk;
        size = std::min(chunk, size - which * chunk);
        shard = shard * part.size + which;
    }
    return shard;
}

}  // namespace

Index positions(const DraftMesh& mesh) {
    Index product = 1;
    for (const Index size : mesh.sizes) product *= size;
    return product;
}

Index shards(const DraftDim& dim) {
    Index product = 1;
    for (const Part& part : dim.parts) product *= part.size;
    return product;
}

Index device_of(const DraftMesh& mesh, Index position) {
    return mesh.devices ? (*mesh.devices)[static_cast<std::size_t>(position)] : position;
}

Index world_of(const Draft& draft) {
    Index most = 0;
    for (const End* end : {&draft.source, &draft.target})
        for (Index position = 0; position < positions(end->mesh); ++position)
            most = std::max(most, device_of(end->mesh, position));
    return most + 1;
}

Index coordinate(const DraftMesh& mesh, const Part& part, Index position) {
    for (std::size_t axis = mesh.sizes.size(); axis-- > part.axis + 1;) position /= mesh.sizes[axis];
    const Index on_axis = position % mesh.sizes[part.axis];
    const Index minor = mesh.sizes[part.axis] / (part.before * part.size);
    return on_axis / minor % part.size;
}

Index number_on(const DraftMesh& mesh, const std::vector<Part>& parts, Index position) {
    Index number = 0;
    for (const Part& part : parts) number = number * part.size + coordinate(mesh, part, position);
    return number;
}

std::vector<Part> summing_parts(const End& end) {
    std::vector<Part> parts = end.unreduced;
    std::ranges::sort(parts, [](const Part& a, const Part& b) {
        return a.axis != b.axis ? a.axis < b.axis : a.before < b.before || (a.before == b.before && a.size < b.size);
    });
    return parts;
}

Index summands(const End& end) {
    Index product = 1;
    for (const Part& part : end.unreduced) product *= part.size;
    return product;
}

Index elements_in_all(const End& end) {
    Index product = 1;
    for (const DraftDim& dim : end.dims) product *= dim.extent;
    return product;
}

Index owner(const DraftDim& dim, Index index) {
    switch (dim.cut.kind) {
        case Cut::Kind::balanced: {
            // Each shard takes a fair share of what the shards before it left, rounded up.
            Index shard = 0;
            for (Index left = dim.extent, count = shards(dim);; ++shard, --count) {
                const Index share = (left + count - 1) / count;
                if (index < share) return shard;
                index -= share;
                left -= share;
            }
        }
        case Cut::Kind::blocks:
            return index / dim.cut.block % shards(dim);
        case Cut::Kind::shares:
            for (std::size_t shard = 0; shard < dim.cut.shares.size(); ++shard) {
                if (index < dim.cut.shares[shard]) return static_cast<Index>(shard);
                index -= dim.cut.shares[shard];
            }
            return -1;
        case Cut::Kind::pieces:
            for (const auto& [end, shard] : dim.cut.pieces)
                if (index < end) return shard;
            return -1;
        case Cut::Kind::chunks:
            return owner_by_turns(dim, index);
        case Cut::Kind::even:
            break;
    }
    return index / ceiling(dim.extent, shards(dim));
}

std::vector<Holder> holders(const End& end, Index world) {
    std::vector<std::vector<Index>> owners;
    for (const DraftDim& dim : end.dims) {
        owners.emplace_back();
        for (Index index = 0; index < dim.extent; ++index) owners.back().push_back(owner(dim, index));
    }
    const std::vector<Part> sums = summing_parts(end);
    std::vector<Holder> all(static_cast<std::size_t>(world));
    for (Index position = 0; position < positions(end.mesh); ++position) {
        Holder& holder = all[static_cast<std::size_t>(device_of(end.mesh, position))];
        holder.within = true;
        holder.summand = number_on(end.mesh, sums, position);
        holder.elements = {0};
        for (std::size_t i = 0; i < end.dims.size(); ++i) {
            const Index shard = number_on(end.mesh, end.dims[i].parts, position);
            std::vector<Index> longer;
            for (const Index leading : holder.elements)
                for (std::size_t index = 0; index < owners[i].size(); ++index)
                    if (owners[i][index] == shard)
                        longer.push_back(leading * end.dims[i].extent + static_cast<Index>(index));
            holder.elements = std::move(longer);
        }
    }
    return all;
}

bool with_sums(const Draft& draft) { return summands(draft.source) > 1 || summands(draft.target) > 1; }

bool divides(const End& end) {
    return std::ranges::all_of(end.dims, [](const DraftDim& dim) {
        const bool even =
            dim.cut.kind == Cut::Kind::even || dim.cut.kind == Cut::Kind::balanced || dim.cut.kind == Cut::Kind::chunks;
        return even && dim.extent % shards(dim) == 0;
    });
}

Index largest_tile(const std::vector<Holder>& all) {
    std::size_t most = 0;
    for (const Holder& holder : all) most = std::max(most, holder.elements.size());
    return static_cast<Index>(most);
}

}  // namespace reshard::test
