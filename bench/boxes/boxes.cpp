// Exchanges of boxes at scale: the time to index 2^20 boxes of any size, and to find the routes of one rank. No box is
// moved.
#include <benchmark/benchmark.h>

#include <random>

#include "src/boxes/routes.hpp"

namespace {

using namespace reshard;

constexpr Index widest = 64 * 128;  // the array is widest x widest x widest / 2

Box grown(const Box& box, const std::vector<Index>& shape) {
    Box wide;
    for (std::size_t k = 0; k < box.size(); ++k)
        wide.push_back({std::max<Index>(box[k].begin - 2, 0), std::min(box[k].end + 2, shape[k])});
    return wide;
}

// Each rank owns one box and wants two cells around it. The boxes are cuts at 30% to 70% of the longest side.
BoxTable cuts(Index ranks) {
    std::mt19937_64 random(1);
    BoxTable table{DType::f64, {widest, widest, widest / 2}, {}};
    std::vector<Box> boxes = {{{0, widest}, {0, widest}, {0, widest / 2}}};
    while (std::ssize(boxes) < ranks) {
        std::vector<Box> halves;
        for (const Box& box : boxes) {
            std::size_t dim = 0;
            for (std::size_t k = 1; k < box.size(); ++k)
                if (box[k].size() > box[dim].size()) dim = k;
            const Index share = 30 + static_cast<Index>(random() % 40);
            const Index border = box[dim].begin + std::max<Index>(1, box[dim].size() * share / 100);
            for (const Interval& half : {Interval{box[dim].begin, border}, Interval{border, box[dim].end}}) {
                halves.push_back(box);
                halves.back()[dim] = half;
            }
        }
        boxes = std::move(halves);
    }
    for (const Box& box : boxes) table.ranks.push_back({{box}, {grown(box, table.shape)}});
    return table;
}

const BoxTable& table_of(Index ranks) {
    static std::map<Index, BoxTable> tables;
    if (!tables.contains(ranks)) tables[ranks] = cuts(ranks);
    return tables[ranks];
}

void index_boxes(benchmark::State& state) {
    const BoxTable& table = table_of(state.range(0));
    for (auto _ : state) {
        std::vector<NumberedBox> owned;
        for (const RankBoxes& rank : table.ranks) owned.push_back({std::ssize(owned), 0, rank.have.data()});
        benchmark::DoNotOptimize(BoxIndex(std::move(owned), 3));
    }
}
BENCHMARK(index_boxes)->Arg(1 << 20)->Unit(benchmark::kMillisecond);

void receives_of_a_rank(benchmark::State& state) {
    const BoxRoutes routes(table_of(state.range(0)));
    std::mt19937_64 random(2);
    std::size_t boxes = 0;
    for (auto _ : state) boxes += routes.receives(static_cast<Index>(random()) & (state.range(0) - 1)).size();
    state.counters["boxes"] = static_cast<double>(boxes) / static_cast<double>(state.iterations());
}
BENCHMARK(receives_of_a_rank)->Arg(1 << 20)->Unit(benchmark::kMicrosecond);

void sends_of_a_rank(benchmark::State& state) {
    const BoxRoutes routes(table_of(state.range(0)));
    std::mt19937_64 random(3);
    for (auto _ : state) benchmark::DoNotOptimize(routes.sends(static_cast<Index>(random()) & (state.range(0) - 1)));
}
BENCHMARK(sends_of_a_rank)->Arg(1 << 20)->Unit(benchmark::kMicrosecond);

}  // namespace
