#include "bindings/scalapack/submatrix.hpp"

#include <algorithm>
#include <string>

#include "src/base/try.hpp"

namespace reshard::scalapack {
namespace {

// Index i of the submatrix is index begin + i of the matrix, whose block b belongs to process (first + b) mod grid.
std::vector<Dim::Piece> pieces_of(const Cyclic& cyclic, std::size_t dim, Index extent) {
    std::vector<Dim::Piece> pieces;
    const Index block = cyclic.block[dim];
    const Index begin = cyclic.begin[dim];
    for (Index number = begin / block; number * block < begin + extent; ++number) {
        const Index end = std::min((number + 1) * block, begin + extent);
        pieces.push_back({end - begin, (cyclic.first[dim] + number) % cyclic.grid[dim]});
    }
    return pieces;
}

Result<void> require(bool holds, const char* name, const std::string& otherwise) {
    if (holds) return {};
    return fail(Code::mismatch, std::string("p?gemr2d: of ") + name + ", " + otherwise);
}

}  // namespace

Index own_before(const Cyclic& cyclic, std::size_t dim, Index end, Index place) {
    const Index block = cyclic.block[dim];
    const Index grid = cyclic.grid[dim];
    const Index shift = (place - cyclic.first[dim] + grid) % grid;
    return end / (block * grid) * block + std::clamp<Index>(end % (block * grid) - shift * block, 0, block);
}

Result<void> validate(const Cyclic& cyclic, std::array<Index, 2> shape, const char* name) {
    for (std::size_t dim = 0; dim < 2; ++dim) {
        const std::string what = dim == 0 ? "rows" : "columns";
        RESHARD_CHECK(
            require(cyclic.block[dim] >= 1, name, "blocks have " + std::to_string(cyclic.block[dim]) + " " + what));
        RESHARD_CHECK(require(cyclic.first[dim] >= 0 && cyclic.first[dim] < cyclic.grid[dim], name,
                              "the first block is on process " + std::to_string(cyclic.first[dim]) + " of " +
                                  std::to_string(cyclic.grid[dim]) + " in its " + what));
        RESHARD_CHECK(require(
            shape[dim] >= 0 && cyclic.begin[dim] >= 0 && cyclic.begin[dim] + shape[dim] <= cyclic.extent[dim], name,
            "the submatrix has " + what + " " + std::to_string(cyclic.begin[dim] + 1) + " to " +
                std::to_string(cyclic.begin[dim] + shape[dim]) + " of " + std::to_string(cyclic.extent[dim])));
    }
    return {};
}

Result<Layout> layout_of(const Cyclic& cyclic, std::array<Index, 2> shape, DType dtype, std::span<const Index> ranks) {
    const Mesh mesh({{"row", cyclic.grid[0]}, {"column", cyclic.grid[1]}},
                    std::vector<Index>(ranks.begin(), ranks.end()));
    RESHARD_TRY(auto& layout, make_layout(mesh, dtype, {shape[1], shape[0]}, P{"column", "row"}));
    for (std::size_t dim = 0; dim < 2; ++dim) {
        if (cyclic.grid[dim] == 1) continue;  // one piece, however many blocks
        Dim& cut = layout.dims[1 - dim];
        cut.pieces = pieces_of(cyclic, dim, shape[dim]);
        make_canonical(cut);
    }
    return layout;
}

Storage storage_of(const Cyclic& cyclic, std::array<Index, 2> place, Index leading) {
    const Index row = own_before(cyclic, 0, cyclic.begin[0], place[0]);
    const Index column = own_before(cyclic, 1, cyclic.begin[1], place[1]);
    return {row + column * leading, {leading, 1}};
}

}  // namespace reshard::scalapack
