// Runs the example at the head of reshard/reshard.hpp, word for word, on six ranks of this process.
#include <atomic>
#include <cstdio>
#include <numeric>
#include <reshard/backends/local.hpp>
#include <reshard/reshard.hpp>
#include <thread>
using namespace reshard;

namespace {

std::atomic<Index> moved_elements = 0;
std::atomic<Index> wrong = 0;

void run(Backend& backend, std::vector<float>& in, std::vector<float>& out) {
#include "door_example.inc"
    if (!moved || !ran) std::printf("%s\n", (moved ? ran : moved).error().message.c_str());
    if (verdict != made.verdict()) std::printf("the judge says something else than the synthesis\n");
}

}  // namespace

int main() {
    constexpr Index columns = 512;
    const Mesh mesh = *parse_mesh("x=2,y=3");
    const Layout source = *parse_layout(mesh, "f32[1536@x,512]");
    const Layout target = *parse_layout(mesh, "f32[1536@y,512]");
    local::World world(6);
    std::vector<std::thread> ranks;
    for (Index rank = 0; rank < world.size(); ++rank) {
        ranks.emplace_back([&, rank] {
            std::vector<float> in(static_cast<std::size_t>(tile_count(source, rank)));
            std::iota(in.begin(), in.end(), static_cast<float>(tile_offset(source, rank)[0] * columns));
            std::vector<float> out(static_cast<std::size_t>(tile_count(target, rank)), -1);
            run(world.rank(rank), in, out);
            auto expected = static_cast<float>(tile_offset(target, rank)[0] * columns);
            for (const float value : out) wrong += value != expected++ ? 1 : 0;
            moved_elements += static_cast<Index>(out.size());
        });
    }
    for (std::thread& rank : ranks) rank.join();
    std::printf("6 ranks moved %lld elements, %lld wrong\n", static_cast<long long>(moved_elements),
                static_cast<long long>(wrong));
}
