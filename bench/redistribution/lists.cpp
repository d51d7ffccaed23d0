// Many small arrays at once: one executor for the list, planned under one footprint limit, against one executor for
// each array. `lists [ARRAYS [BYTES [serve | transformer]]]` under mpirun. With `serve` the last two ranks take over
// the arrays that the others have trained; with `transformer` the arrays are a transformer's, none larger than BYTES.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "redistribution/contestants.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/text.hpp"

namespace reshard::bench {
namespace {

enum class Manner { same_ranks, serve, transformer };

struct Array {
    Case one;
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;
};

// A tensor of one layer: rows and columns in parts of the width (0: a vector), and the dimension that the servers cut
// (-1: none).
struct Tensor {
    Index rows, columns;
    int cut;
};
constexpr Tensor layer[] = {{4, 4, 0},  {1, 4, 0},  {1, 4, 0},  {4, 4, 1}, {12, 4, 0},
                            {12, 4, 0}, {4, 12, 1}, {4, 0, -1}, {4, 0, -1}};

Question transformer_question(int number, Index bytes, Index trainers) {
    const auto part = static_cast<Index>(std::sqrt(static_cast<double>(bytes) / (4 * 12 * 4)));
    const Tensor& tensor = layer[number % std::ssize(layer)];
    const auto text = [&](std::string_view first, std::string_view second) {
        if (tensor.columns == 0) return fmt::format("f32[{}{}]", tensor.rows * part, first);
        return fmt::format("f32[{}{},{}{}]", tensor.rows * part, first, tensor.columns * part, second);
    };
    return {"transformer", fmt::format("x={}", trainers), text("@x", ""),
            text(tensor.cut == 0 ? "@x" : "", tensor.cut == 1 ? "@x" : "")};
}

Question question_of(int number, Index bytes, Manner manner, Index ranks) {
    const Index trainers = manner == Manner::same_ranks ? ranks : ranks - 2;
    const Index rows = std::max<Index>(bytes / 4 / 64, 1);
    Question question{"small", fmt::format("x={}", trainers), fmt::format("f32[{}@x,64]", rows),
                      fmt::format("f32[{},64@x]", rows)};
    if (manner == Manner::transformer) question = transformer_question(number, bytes, trainers);
    if (manner != Manner::same_ranks) question.target_mesh = fmt::format("x=2[{}-{}]", trainers, trainers + 1);
    return question;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
    MPI_Barrier(MPI_COMM_WORLD);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double timed(const std::vector<std::unique_ptr<Bound>>& runs) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& bound : runs) {
        if (const auto done = bound->start().value()->wait(); !done) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return seconds_since(begin);
}

Index sum_of(Index mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return mine;
}

Index most_of(Index mine) {
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

Index wrong(std::vector<Array>& arrays) {
    Index all = 0;
    for (Array& array : arrays) {
        all += count_wrong(array.one, array.target->bytes());
        wipe(array.target->bytes());
    }
    return sum_of(all);
}

std::vector<Array> make_arrays(int count, Index bytes, Manner manner, Backend& backend) {
    std::vector<Array> arrays;
    for (int i = 0; i < count; ++i) {
        arrays.push_back({make_case(question_of(i, bytes, manner, backend.size()), backend.rank()).value(), {}, {}});
    }
    return arrays;
}

Buffers buffers_of(const Array& array) { return {{}, array.target->bytes(), {}, array.source->bytes()}; }

void take(Backend& backend, Array& array) {
    array.source = backend.allocate(array.one.whole.source_bytes).value();
    fill(array.one, array.source->bytes());
}

// Bucket by bucket: targets are taken just before, sources given back just after. Counts what is wrong.
Index move_and_free(Executor& executor, Backend& backend, std::vector<Array>& arrays) {
    for (std::size_t bucket = 0; bucket < executor.bucket_count(); ++bucket) {
        std::vector<Buffers> buffers;
        for (const std::size_t i : executor.bucket(bucket)) {
            arrays[i].target = backend.allocate(arrays[i].one.whole.target_bytes).value();
            buffers.push_back(buffers_of(arrays[i]));
        }
        std::vector<std::unique_ptr<Bound>> bound;
        bound.push_back(executor.bind(bucket, buffers).value());
        timed(bound);
        for (const std::size_t i : executor.bucket(bucket)) arrays[i].source.reset();
    }
    return wrong(arrays);
}

struct Figures {
    std::size_t buckets = 0;
    Index limit = 0;
    Index stated = 0;  // by the judge, with the staging that the limit leaves
    Index most = 0;    // of any rank, by the backend's own count
    Index floor = 0;
    Index messages = 0;
    double prepare_list = 0;
    double prepare_each = 0;
};

int measure_lists(int count, Index bytes, Manner manner) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::vector<Array> arrays = make_arrays(count, bytes, manner, *backend);
    std::vector<Problem> problems;
    for (const Array& array : arrays) problems.push_back(array.one.problem);
    // Sources are freed as soon as they are done. The limit is an eighth above the need of any order.
    constexpr Index staging = Index{1} << 20;
    Figures figures;
    Options options;
    options.capabilities = backend->capabilities();
    figures.floor = synthesize(std::span<const Problem>(problems), options, {.donate = true}).value().floor_bytes;
    figures.limit = figures.floor + figures.floor / 8 + staging;
    const MemoryPolicy memory{.footprint_bytes_max = figures.limit, .donate = true, .staging_bytes = staging};
    const auto made = synthesize(std::span<const Problem>(problems), options, memory).value();
    figures.buckets = made.list().buckets.size();
    figures.stated = made.verdict().footprint_bytes + staging;
    figures.messages = made.verdict().load.messages;
    auto begin = std::chrono::steady_clock::now();
    Executor list = Executor::prepare(made, *backend).value();
    figures.prepare_list = seconds_since(begin);
    for (Array& array : arrays) take(*backend, array);
    Index bad = move_and_free(list, *backend, arrays);
    figures.most = most_of(backend->memory_use().most_bytes);

    // When times are measured, all memory exists from the start, and so do the executors for each array. Sources are
    // moved again: a plan of one exchange has no tiles between that could be put there, and what arrives is looked at.
    std::vector<Buffers> buffers;
    for (Array& array : arrays) {
        take(*backend, array);
        buffers.push_back(buffers_of(array));
    }
    begin = std::chrono::steady_clock::now();
    std::vector<Executor> executors;
    for (const Plan& plan : made.list().plans)
        executors.push_back(Executor::prepare(judge(plan, backend->capabilities()), *backend).value());
    figures.prepare_each = seconds_since(begin);
    std::vector<std::unique_ptr<Bound>> each;
    for (std::size_t i = 0; i < arrays.size(); ++i) each.push_back(executors[i].bind({&buffers[i], 1}).value());
    std::vector<std::unique_ptr<Bound>> together;
    together.push_back(list.bind(buffers).value());
    timed(each);
    bad += wrong(arrays);
    timed(together);
    bad += wrong(arrays);
    std::vector<double> seconds_each;
    std::vector<double> seconds_list;
    for (int round = 0; round < 15; ++round) {
        seconds_each.push_back(timed(each));
        seconds_list.push_back(timed(together));
    }
    bad += wrong(arrays);
    std::ranges::sort(seconds_each);
    std::ranges::sort(seconds_list);
    if (backend->rank() == 0) {
        fmt::print(
            "{} arrays of at most {} bytes, {} ranks: one by one {:.3f} ms, as a list {:.3f} ms, {:.1f}x; wrong {}\n",
            count, bytes, backend->size(), seconds_each[7] * 1e3, seconds_list[7] * 1e3,
            seconds_each[7] / seconds_list[7], bad);
        fmt::print(
            "limit {} a rank (floor {}), stated {}, high-water mark {}: {}; {} buckets, {} messages; prepared in "
            "{:.1f} ms, one by one {:.1f} ms\n",
            figures.limit, figures.floor, figures.stated, figures.most,
            figures.most <= figures.limit ? "kept" : "BROKEN", figures.buckets, figures.messages,
            figures.prepare_list * 1e3, figures.prepare_each * 1e3);
    }
    return bad == 0 && figures.most <= figures.limit ? 0 : 1;
}

Manner manner_of(std::string_view word) {
    if (word == "serve") return Manner::serve;
    return word == "transformer" ? Manner::transformer : Manner::same_ranks;
}

}  // namespace
}  // namespace reshard::bench

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int arrays = argc > 1 ? std::atoi(argv[1]) : 300;
    const int code = reshard::bench::measure_lists(arrays, argc > 2 ? std::atoll(argv[2]) : 32768,
                                                   reshard::bench::manner_of(argc > 3 ? argv[3] : ""));
    MPI_Finalize();
    return code;
}
