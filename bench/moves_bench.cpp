// Every kind of step by itself, and whole redistributions, through shared memory and by messages, packed in pieces or
// as MPI's datatypes. Run it under mpirun; rank 0 reports, and a time is from the first rank to start to the last rank
// to end.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "bench/timing.hpp"
#include "redistribution/problems.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/text.hpp"

namespace reshard::bench {
namespace {

constexpr int rounds = 20;  // the same on all ranks

struct Transport {
    const char* name;
    bool shared_memory;
    Index piece_bytes = mpi::Options{}.piece_bytes;
};
constexpr Transport transports[] = {{"shared", true}, {"messages", false}, {"datatypes", false, 0}};

struct Move {
    std::string name;
    Plan plan;
    std::optional<Case> known;  // whose values are checked after the last round
};

// On a mesh x of all ranks; {0} in the words stands for `rows`.
Layout layout_of(const char* words, int ranks, Index rows, const std::string& devices = "") {
    const Mesh mesh = parse_mesh(fmt::format("x={}{}", ranks, devices)).value();
    return parse_layout(mesh, fmt::format(fmt::runtime(words), rows)).value();
}

// Each device's tile goes to the device after it.
std::string turned_round(int ranks) {
    std::string devices = fmt::format("[{}", ranks - 1);
    for (int i = 0; i + 1 < ranks; ++i) devices += fmt::format(",{}", i);
    return devices + "]";
}

// One step of each kind on an array of N x N elements of f32.
std::vector<Move> steps(int ranks, Index rows) {
    const auto step = [&](StepKind kind, const char* before, const char* after, const std::string& devices = "") {
        const Layout source = layout_of(before, ranks, rows);
        const Layout target = layout_of(after, ranks, rows, devices);
        return Move{fmt::format("{}/{}", name(kind), format_bytes(4 * rows * rows)),
                    {source, target, {{kind, target}}},
                    std::nullopt};
    };
    return {step(StepKind::slice, "f32[{0},{0}]", "f32[{0}@x,{0}]"),
            step(StepKind::all_gather, "f32[{0}@x,{0}]", "f32[{0},{0}]"),
            step(StepKind::all_to_all, "f32[{0}@x,{0}]", "f32[{0},{0}@x]"),
            step(StepKind::permute, "f32[{0}@x,{0}]", "f32[{0}@x,{0}]", turned_round(ranks)),
            step(StepKind::reduce_scatter, "f32[{0},{0}]{{U:x}}", "f32[{0}@x,{0}]"),
            step(StepKind::all_reduce, "f32[{0},{0}]{{U:x}}", "f32[{0},{0}]"),
            step(StepKind::zero_fill, "f32[{0}@x,{0}]", "f32[{0},{0}]{{U:x}}"),
            step(StepKind::exchange, "f32[{0}@x,{0}]", "f32[{0}@x/16,{0}]")};
}

double largest(double mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

template <class Value>
Value must(Result<Value> result) {
    if (!result) {
        std::fprintf(stderr, "%s\n", describe(result.error()).c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

void move(benchmark::State& state, const Move& one, Transport transport) {
    mpi::Options options;
    options.shared_memory = transport.shared_memory;
    options.piece_bytes = transport.piece_bytes;
    auto backend = must(mpi::make_backend(MPI_COMM_WORLD, options));
    const Storages storages = one.known ? one.known->storages : Storages{};
    Executor executor = must(Executor::prepare(judge(one.plan, backend->capabilities()), *backend, storages));
    const auto source = must(backend->allocate(executor.plans()[0].source_bytes));
    const auto target = must(backend->allocate(executor.plans()[0].target_bytes));
    const auto workspace = must(backend->allocate(executor.workspace_bytes()));
    std::memset(source->bytes().data(), 0, source->bytes().size());
    if (one.known) fill(*one.known, source->bytes());
    if (one.known) wipe(target->bytes());
    const Buffers buffers{source->bytes(), target->bytes(), workspace->bytes()};
    auto bound = must(executor.bind(std::span(&buffers, 1)));
    must(must(bound->start())->wait());  // first touched here
    for (auto _ : state) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = now();
        must(must(bound->start())->wait());
        state.SetIterationTime(largest(now()) + largest(-begin));
    }
    Index bytes = executor.plans()[0].target_bytes;
    Index wrong = one.known ? count_wrong(*one.known, target->bytes()) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (wrong > 0) state.SkipWithError("wrong elements arrived");
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
    state.SetLabel(executor.describe());
}

void add(const std::string& family, const Move& one) {
    for (const Transport transport : transports)
        benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", family, one.name, transport.name).c_str(),
                                     [one, transport](benchmark::State& state) { move(state, one, transport); })
            ->UseManualTime()
            ->Iterations(rounds)
            ->Unit(benchmark::kMillisecond);
}

// The reporter of ranks that print nothing.
class Silent final : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>&) override {}
};

int run(int argc, char** argv) {
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    for (const Index rows : {256, 4096})
        for (const Move& one : steps(ranks, rows)) add("step", one);
    for (const Question& question : questions(ranks)) {
        Case known = must(make_case(question, rank));
        const Plan plan = known.plan;
        add("redistribution", {question.name, plan, std::move(known)});
    }
    Silent silent;
    if (rank == 0)
        benchmark::RunSpecifiedBenchmarks();
    else
        benchmark::RunSpecifiedBenchmarks(&silent);
    benchmark::Shutdown();
    return 0;
}

}  // namespace
}  // namespace reshard::bench

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int code = reshard::bench::run(argc, argv);
    MPI_Finalize();
    return code;
}
