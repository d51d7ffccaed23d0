// How long planning takes, judge included: by atoms, by devices for one pattern, and over random pairs on 2^20 devices.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>

#include <fmt/format.h>

#include "reshard/reshard.hpp"

using namespace reshard;

namespace {

Options options_of(const benchmark::State& state) {
    Options options;
    options.vocabulary = static_cast<Vocabulary>(state.range(0));
    options.objective = static_cast<Objective>(state.range(1));
    return options;
}

void plan(benchmark::State& state, const Layout& source, const Layout& target) {
    const Options options = options_of(state);
    for (auto _ : state) benchmark::DoNotOptimize(synthesize(source, target, options));
    state.SetLabel(fmt::format("{} {}", name(options.vocabulary), name(options.objective)));
}

// The first pair of README: two atoms.
void two_atoms(benchmark::State& state) {
    const Mesh mesh{{"x", 2}, {"y", 3}};
    plan(state, *parse_layout(mesh, "f32[12288@x,4096]"), *parse_layout(mesh, "f32[12288@y,4096]"));
}

void four_atoms(benchmark::State& state) {
    const Mesh mesh{{"x", 2}, {"y", 2}, {"z", 2}, {"w", 2}};
    plan(state, *parse_layout(mesh, "f32[4096@(x,z,w),4096@y]"), *parse_layout(mesh, "f32[4096@w,4096@(x,y,z)]"));
}

// One axis pattern, from 2^4 to 2^20 devices: the time should not know the difference.
void same_pattern(benchmark::State& state) {
    const Index size = Index{1} << (state.range(2) / 2);
    const Mesh mesh{{"x", size}, {"y", size}};
    const Index n = Index{1} << 20;
    plan(state, *make_layout(mesh, DType::f32, {n, n}, P{"x", "y"}),
         *make_layout(mesh, DType::f32, {n, n}, P{"y", "x"}));
}

Layout random_layout(const Mesh& mesh, std::mt19937& random) {
    constexpr std::size_t rank = 4;
    std::vector<std::string> axes;
    for (const Axis& axis : mesh.axes) axes.push_back(axis.name);
    std::ranges::shuffle(axes, random);
    for (;;) {
        P spec(rank);
        for (const std::string& axis : axes)
            if (const std::size_t dim = random() % (rank + 1); dim < rank) spec[dim].axes.push_back(axis);
        const Layout layout = *make_layout(mesh, DType::f32, {30720, 30720, 30720, 30720}, spec);
        if (divides(layout)) return layout;
    }
}

// 2^11 x 3 x 5 x ... devices of many small axes, rank 4: percentiles over random pairs, in microseconds.
void random_pairs(benchmark::State& state) {
    Mesh mesh;
    for (int i = 0; i < 16; ++i) mesh.axes.push_back({fmt::format("a{}", i), i == 3 ? 3 : i == 7 ? 5 : 2});
    const Options options = options_of(state);
    std::mt19937 random(7);
    std::vector<double> times;
    double ratio = 0;
    Index pairs = 0;
    for (auto _ : state) {
        const Layout source = random_layout(mesh, random);
        const Layout target = random_layout(mesh, random);
        const auto begin = std::chrono::steady_clock::now();
        const auto made = synthesize(source, target, options);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        state.SetIterationTime(taken.count());
        times.push_back(taken.count() * 1e6);
        if (made->verdict.lower_bound_bytes == 0) continue;
        ratio += static_cast<double>(made->verdict.received_bytes_max_device) /
                 static_cast<double>(made->verdict.lower_bound_bytes);
        ++pairs;
    }
    std::ranges::sort(times);
    const auto at = [&](double share) {
        return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
    };
    state.counters["median_us"] = at(0.5);
    state.counters["p99_us"] = at(0.99);
    state.counters["over_bound"] = ratio / static_cast<double>(std::max<Index>(pairs, 1));
    state.SetLabel(
        fmt::format("{} {} on {} devices", name(options.vocabulary), name(options.objective), device_count(mesh)));
}

constexpr std::array<std::int64_t, 2> vocabularies = {static_cast<int>(Vocabulary::all),
                                                      static_cast<int>(Vocabulary::collectives)};

void each_vocabulary(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies)
        for (const Objective objective : {Objective::time, Objective::bytes})
            bench->Args({vocabulary, static_cast<int>(objective)});
}

void each_size(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies)
        for (const std::int64_t log_devices : {4, 12, 20})
            bench->Args({vocabulary, static_cast<int>(Objective::bytes), log_devices});
}

BENCHMARK(two_atoms)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond);
BENCHMARK(four_atoms)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond);
BENCHMARK(same_pattern)->Apply(each_size)->Unit(benchmark::kMicrosecond);
BENCHMARK(random_pairs)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(2000);

}  // namespace
