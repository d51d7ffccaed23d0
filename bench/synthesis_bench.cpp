// The time of planning, judge included: by atoms, by devices for one pattern, and over random pairs on 2^20 devices.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <ctime>
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

// Tensor-parallel weights to FSDP: an axis enters a dimension above another, so the plan splits the dimension.
void split_dimension(benchmark::State& state) {
    const Mesh mesh{{"x", 2}, {"y", 8}};
    plan(state, *parse_layout(mesh, "f32[1024,1024@x]"), *parse_layout(mesh, "f32[1024@(x,y),1024]"));
}

// The same in nine prime digits, on 512 devices.
void split_nine_digits(benchmark::State& state) {
    const Mesh mesh{{"pod", 2}, {"dp", 32}, {"tp", 8}};
    plan(state, *parse_layout(mesh, "f32[1048576@(pod,dp),1048576@tp]"),
         *parse_layout(mesh, "f32[1048576,1048576@dp]"));
}

// One axis pattern, from 2^4 to 2^20 devices: the time should be the same.
void same_pattern(benchmark::State& state) {
    const Index size = Index{1} << (state.range(2) / 2);
    const Mesh mesh{{"x", size}, {"y", size}};
    const Index n = Index{1} << 20;
    plan(state, *make_layout(mesh, DType::f32, {n, n}, P{"x", "y"}),
         *make_layout(mesh, DType::f32, {n, n}, P{"y", "x"}));
}

// A mesh of one axis for each prime, extents that some of its layouts divide, and a machine; one level where none is
// named.
struct Field {
    Mesh mesh;
    std::vector<Index> extents;
    Machine machine;
};

Field field(const std::vector<Index>& primes, std::vector<Index> extents, std::string_view machine = "laptop") {
    Field made{{}, std::move(extents), *make_machine(machine)};
    for (std::size_t i = 0; i < primes.size(); ++i) made.mesh.axes.push_back({fmt::format("a{}", i), primes[i]});
    return made;
}

// With `sums` some axes may be unreduced.
Layout random_layout(const Field& field, std::mt19937& random, bool sums = false) {
    const std::size_t rank = field.extents.size();
    std::vector<std::string> axes;
    for (const Axis& axis : field.mesh.axes) axes.push_back(axis.name);
    for (;;) {
        for (std::size_t i = axes.size(); i > 1; --i) std::swap(axes[i - 1], axes[random() % i]);
        P spec(rank);
        std::vector<std::string> unreduced;
        for (const std::string& axis : axes) {
            const std::size_t dim = random() % (rank + (sums ? 2 : 1));
            if (dim < rank) spec[dim].axes.push_back(axis);
            if (dim > rank) unreduced.push_back(axis);
        }
        const Layout layout = *make_layout(field.mesh, DType::f32, field.extents, spec, unreduced);
        if (divides(layout)) return layout;
    }
}

// The time of this thread alone: a percentile must not count other programs.
double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Percentiles over random pairs of these fields in turn, in microseconds, and received bytes over the lower bound.
void plan_random(benchmark::State& state, const std::vector<Field>& fields, bool sums = false) {
    Options options = options_of(state);
    std::mt19937 random(7);
    std::vector<double> times;
    double ratio = 0;
    Index pairs = 0;
    Index complete = 0;
    for (auto _ : state) {
        const Field& drawn = fields[times.size() % fields.size()];
        const Layout source = random_layout(drawn, random, sums);
        const Layout target = random_layout(drawn, random, sums);
        options.machine = drawn.machine;
        const double begin = thread_seconds();
        const auto made = synthesize(source, target, options);
        const double taken = thread_seconds() - begin;
        state.SetIterationTime(taken);
        times.push_back(taken * 1e6);
        complete += made->search_complete ? 1 : 0;
        if (made->verdict().lower_bound_bytes == 0) continue;
        ratio += static_cast<double>(made->verdict().received_bytes_max_device) /
                 static_cast<double>(made->verdict().lower_bound_bytes);
        ++pairs;
    }
    std::ranges::sort(times);
    const auto at = [&](double share) {
        return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
    };
    state.counters["median_us"] = at(0.5);
    state.counters["p99_us"] = at(0.99);
    state.counters["most_us"] = times.back();
    state.counters["complete"] = static_cast<double>(complete) / static_cast<double>(times.size());
    state.counters["over_bound"] = ratio / static_cast<double>(std::max<Index>(pairs, 1));
    state.SetLabel(fmt::format("{} {}", name(options.vocabulary), name(options.objective)));
}

// Every mix of up to four small axes, rank 1 to 3.
std::vector<Field> few_axes() {
    return {field({2, 3}, {4608}),
            field({2, 2, 2}, {4096, 4096}),
            field({2, 3, 2}, {4608, 4608, 96}),
            field({2, 2, 2, 2}, {4096, 4096}),
            field({2, 3, 2, 5}, {7200, 7200}),
            field({2, 2, 2, 2}, {512, 512, 512})};
}

void random_small(benchmark::State& state) { plan_random(state, few_axes()); }

void random_small_sums(benchmark::State& state) { plan_random(state, few_axes(), true); }

// The cost of the rule `split_dims` where it does not help: the pairs whose plan is the same without the rule. Each
// pair is planned seven times with the rule and without, in turn. Its ratio is that of the least times.
void digits_without_gain(benchmark::State& state) {
    const std::vector<Field> fields = few_axes();
    const Options with = options_of(state);
    Options without = with;
    without.disabled_rules = {"split_dims"};
    std::mt19937 random(7);
    std::vector<double> ratios;
    std::size_t pairs = 0;
    for (auto _ : state) {
        const Field& drawn = fields[pairs++ % fields.size()];
        const Layout source = random_layout(drawn, random);
        const Layout target = random_layout(drawn, random);
        if (!(synthesize(source, target, with)->plan() == synthesize(source, target, without)->plan())) continue;
        std::array<double, 2> least = {1, 1};
        for (int run = 0; run < 7; ++run)
            for (const bool split : {false, true}) {
                const double begin = thread_seconds();
                benchmark::DoNotOptimize(synthesize(source, target, split ? with : without));
                least[split ? 1 : 0] = std::min(least[split ? 1 : 0], thread_seconds() - begin);
            }
        ratios.push_back(least[1] / least[0]);
    }
    std::ranges::sort(ratios);
    state.counters["same_plan"] = static_cast<double>(ratios.size());
    state.counters["median_ratio"] = ratios[ratios.size() / 2];
    state.SetLabel(std::string(name(with.objective)));
}

// About 2^20 devices (2^20; 2^13 3^3 5; 2^9 3^4 5^2; 2^6 3^6 5^2), one axis a prime, rank 4.
std::vector<Field> many_devices(std::string_view machine) {
    const auto axes = [](int twos, int threes, int fives) {
        std::vector<Index> primes;
        for (int i = 0; i < 20; ++i) {
            if (i < threes) primes.push_back(3);
            if (i < fives) primes.push_back(5);
            if (i < twos) primes.push_back(2);
        }
        return primes;
    };
    return {field(axes(20, 0, 0), {32768, 32768, 32768, 32768}, machine),
            field(axes(13, 3, 1), {23040, 23040, 23040, 23040}, machine),
            field(axes(9, 4, 2), {23040, 23040, 23040, 23040}, machine),
            field(axes(6, 6, 2), {17280, 17280, 17280, 17280}, machine)};
}

void random_pairs(benchmark::State& state) { plan_random(state, many_devices("laptop")); }

// The same on machines of two levels. Digits of the mesh tell the nodes apart, except for nodes of 8 under 60 devices.
void random_small_levels(benchmark::State& state) {
    plan_random(state, {field({2, 3}, {4608}, "ethernet:nodes=2,per_node=3"),
                        field({2, 2, 2}, {4096, 4096}, "ethernet:nodes=4,per_node=2"),
                        field({2, 3, 2}, {4608, 4608, 96}, "ethernet:nodes=6,per_node=2"),
                        field({2, 2, 2, 2}, {4096, 4096}, "dgx-h100:nodes=2"),
                        field({2, 3, 2, 5}, {7200, 7200}, "dgx-h100:nodes=8"),
                        field({2, 2, 2, 2}, {512, 512, 512}, "dgx-h100:nodes=2")});
}

// And of about 2^20 devices.
void random_pairs_levels(benchmark::State& state) { plan_random(state, many_devices("dgx-h100:nodes=138240")); }

constexpr std::array<std::int64_t, 2> vocabularies = {static_cast<int>(Vocabulary::all),
                                                      static_cast<int>(Vocabulary::collectives)};

void each_vocabulary(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies)
        for (const Objective objective : {Objective::time, Objective::bytes})
            bench->Args({vocabulary, static_cast<int>(objective)});
}

// Only the time looks at levels.
void each_vocabulary_in_time(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies) bench->Args({vocabulary, static_cast<int>(Objective::time)});
}

void each_objective(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies)
        for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps})
            bench->Args({vocabulary, static_cast<int>(objective)});
}

void each_objective_of_collectives(benchmark::internal::Benchmark* bench) {
    for (const Objective objective : {Objective::time, Objective::bytes, Objective::steps})
        bench->Args({static_cast<int>(Vocabulary::collectives), static_cast<int>(objective)});
}

void each_size(benchmark::internal::Benchmark* bench) {
    for (const auto vocabulary : vocabularies)
        for (const std::int64_t log_devices : {4, 12, 20})
            bench->Args({vocabulary, static_cast<int>(Objective::bytes), log_devices});
}

BENCHMARK(two_atoms)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond);
BENCHMARK(four_atoms)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond);
BENCHMARK(split_dimension)->Apply(each_objective)->Unit(benchmark::kMicrosecond);
BENCHMARK(split_nine_digits)->Apply(each_objective)->Unit(benchmark::kMicrosecond);
BENCHMARK(same_pattern)->Apply(each_size)->Unit(benchmark::kMicrosecond);
BENCHMARK(random_small)->Apply(each_objective)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(6000);
BENCHMARK(random_small_sums)->Apply(each_objective)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(1200);
BENCHMARK(digits_without_gain)->Apply(each_objective_of_collectives)->Iterations(600);
BENCHMARK(random_pairs)->Apply(each_vocabulary)->Unit(benchmark::kMicrosecond)->UseManualTime()->Iterations(10000);
BENCHMARK(random_small_levels)
    ->Apply(each_vocabulary_in_time)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(6000);
BENCHMARK(random_pairs_levels)
    ->Apply(each_vocabulary_in_time)
    ->Unit(benchmark::kMicrosecond)
    ->UseManualTime()
    ->Iterations(1000);

}  // namespace
