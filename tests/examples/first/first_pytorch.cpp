// The first task of a reader of PyTorch: the local tensors of a DTensor, redistributed.
// [README first_pytorch]
#include <cstdio>
#include <numeric>
#include <reshard/backends/local.hpp>
#include <reshard/reshard.hpp>
using namespace reshard;

int main() {
    Mesh mesh{{"data", 2}, {"model", 2}};
    Layout source = from_placements(mesh, DType::f32, {6, 4}, {Shard(0), Replicate()}).value();
    Layout target = from_placements(mesh, DType::f32, {6, 4}, {Replicate(), Shard(1)}).value();
    std::vector<std::vector<float>> tiles;  // to_local() of each rank
    for (Index rank = 0; rank < 4; ++rank) {
        tiles.emplace_back(tile_count(source, rank));
        std::iota(tiles.back().begin(), tiles.back().end(), 4.0F * tile_offset(source, rank)[0]);
    }
    local::World world(4);
    auto moved = local::redistribute(world, source, target, tiles).value();
    for (float value : moved[3]) std::printf("%g ", value);
}
// [README first_pytorch end]
