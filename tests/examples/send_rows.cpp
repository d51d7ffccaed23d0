// Carries out rows with memcpy among the ranks of one process, as your own transport would.
#include <cstdio>
#include <cstring>
#include <reshard/reshard.hpp>
#include "reshard/model/rows.hpp"

using namespace reshard;

namespace {

int moved(const Layout& source, const Layout& target) {
    std::vector<std::vector<unsigned char>> from(4), to(4);
    for (std::size_t rank = 0; rank < 4; ++rank) {
        from[rank].assign(tile_count(source, static_cast<Index>(rank)), static_cast<unsigned char>(rank));
        to[rank].resize(tile_count(target, static_cast<Index>(rank)));
    }
    // [README rows]
    for (Index rank = 0; rank < 4; ++rank) {
        const std::vector<Row> rows = schedule_rows(source, target, rank).value();  // what this rank sends
        for (const Row& row : rows)
            for (Index i = 0; i < row.runs; ++i)
                std::memcpy(to[row.peer].data() + row.target_offset + i * row.target_stride,
                            from[rank].data() + row.source_offset + i * row.source_stride, row.run_bytes);
    }
    // [README rows end]
    for (const auto& tile : to) {
        for (const unsigned char byte : tile) std::printf("%d", byte);
        std::printf("\n");
    }
    return 0;
}

}  // namespace

int main() {
    // Each rank has a row of a matrix, filled with its number, and wants a column.
    const Mesh mesh{{"x", 4}};
    return moved(parse_layout(mesh, "u8[4@x,8]").value(), parse_layout(mesh, "u8[4,8@x]").value());
}
