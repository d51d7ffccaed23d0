// For a reader of PyTorch: DTensor's placements, redistributed by the ranks of one process.
#include <cstdio>

#include <reshard/backends/local.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

// The local tensors of the array 0, 1, 2, ... of 6 x 4.
std::vector<std::vector<float>> tiles_of(const Layout& layout) {
    std::vector<std::vector<float>> tiles(4);
    for (Index rank = 0; rank < 4; ++rank) {
        const Tile own = tile(layout, rank);
        for (Index i = 0; i < own[0].size(); ++i)
            for (Index j = 0; j < own[1].size(); ++j)
                tiles[rank].push_back(static_cast<float>(4 * own[0].at(i) + own[1].at(j)));
    }
    return tiles;
}

}  // namespace

int main() {
    // [README pytorch]
    Mesh mesh{{"data", 2}, {"model", 2}};
    Layout source = from_placements(mesh, DType::f32, {6, 4}, {Shard(0), Replicate()}).value();
    Layout target = from_placements(mesh, DType::f32, {6, 4}, {Replicate(), Shard(1)}).value();
    std::vector<std::vector<float>> tiles = tiles_of(source);  // to_local() of each rank
    local::World world(4);  // four ranks in this process; mpi::redistribute(comm, ...) for four processes
    auto moved = local::redistribute(world, source, target, tiles).value();
    // [README pytorch end]
    const bool right = moved == tiles_of(target);
    std::puts(right ? "right" : "wrong");
    return right ? 0 : 1;
}
