// The time to plan fills of halos on about 2^20 devices, and to find the routes of one rank. Nothing moves.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>

#include <fmt/format.h>

#include "reshard/halo/plan.hpp"
#include "src/halo/rounds.hpp"

namespace {

using namespace reshard;

// One to three dimensions, cut by the axes of the mesh in any order, with halos of 1 to 3
// cells.
HaloMove random_fill(std::mt19937& random) {
    static const std::vector<Mesh> meshes = {
        {{"x", 1024}, {"y", 1024}}, {{"x", 64}, {"y", 128}, {"z", 128}}, {{"x", 81}, {"y", 128}, {"z", 100}}};
    const Mesh& mesh = meshes[random() % meshes.size()];
    std::vector<std::string> axes;
    for (const Axis& axis : mesh.axes) axes.push_back(axis.name);
    std::ranges::shuffle(axes, random);
    const std::size_t dims = 1 + random() % 3;
    P spec(dims);
    for (const std::string& axis : axes) spec[random() % dims].axes.push_back(axis);
    const Index extent = Index{1} << (dims < 3 ? 24 : 20);
    HaloMove move{{make_layout(mesh, DType::f32, std::vector<Index>(dims, extent), spec).value(), {}}};
    for (std::size_t k = 0; k < dims; ++k)
        move.target.halos.push_back(
            {static_cast<Index>(1 + random() % 3), static_cast<Index>(random() % 4), random() % 2 == 0});
    return move;
}

// The time of this thread alone: a percentile must not count other programs.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Percentiles over random fills, in microseconds.
void measure(benchmark::State& state, const std::function<void(const HaloMove&, std::mt19937&)>& body) {
    std::mt19937 random(7);
    std::vector<double> times;
    for (auto _ : state) {
        const HaloMove move = random_fill(random);
        const double begin = thread_seconds();
        body(move, random);
        times.push_back(thread_seconds() - begin);
        state.SetIterationTime(times.back());
    }
    std::ranges::sort(times);
    const auto at = [&](double share) {
        return 1e6 * times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
    };
    state.counters["median_us"] = at(0.5);
    state.counters["p99_us"] = at(0.99);
}

void plan(benchmark::State& state, const std::string& machine) {
    const Machine made = make_machine(machine).value();
    measure(state, [&](const HaloMove& move, std::mt19937&) { benchmark::DoNotOptimize(plan_halo(move, made)); });
}
BENCHMARK_CAPTURE(plan, laptop, "laptop")->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(plan, nodes_of_8, "ethernet:nodes=131072,per_node=8")->UseManualTime()->Unit(benchmark::kMicrosecond);

// All receives or all sends of one rank, all at once.
void route(benchmark::State& state, const auto& transfers_of) {
    measure(state, [&](const HaloMove& move, std::mt19937& random) {
        const auto rank = static_cast<Index>(random() % static_cast<std::uint32_t>(world_size(owners_of(move).mesh)));
        const HaloRound round = rounds_of(move, HaloWay::at_once).front();
        for (const Wrap& wrap : wraps_of(owners_of(move), wanted_in(move, round), rank))
            benchmark::DoNotOptimize(transfers_of(move, round, rank, wrap));
    });
}
BENCHMARK_CAPTURE(route, receives, round_receives)->UseManualTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(route, sends, round_sends)->UseManualTime()->Unit(benchmark::kMicrosecond);

}  // namespace
