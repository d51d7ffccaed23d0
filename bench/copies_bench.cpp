// The kernels of all copies, by instruction set, against memcpy and a plain loop. One core.
#include <benchmark/benchmark.h>

#include <cstring>

#include "reshard/layout.hpp"
#include "src/copy/copy.hpp"
#include "src/copy/multi_copy.hpp"
#include "src/copy/page_memory.hpp"

namespace reshard {
namespace {

struct Pages {
    std::unique_ptr<Memory> memory;
    explicit Pages(Index bytes) : memory(std::move(*allocate_pages(bytes))) {
        std::memset(memory->bytes().data(), 1, memory->bytes().size());
    }
    [[nodiscard]] std::byte* data() const { return memory->bytes().data(); }
};

Pages& pages(int which) {
    static Pages both[2] = {Pages(Index{256} << 20), Pages(Index{256} << 20)};
    return both[which];
}

void count_bytes(benchmark::State& state, Index bytes) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * bytes);
}

void memory_copy(benchmark::State& state) {
    const Index bytes = state.range(0) << 20;
    for (auto _ : state) std::memcpy(pages(0).data(), pages(1).data(), static_cast<std::size_t>(bytes));
    count_bytes(state, bytes);
}

// Runs that are scattered to 8 places in turn, as a sweep does.
void scattered_rows(benchmark::State& state, const CopyKernels* kernels, Store store) {
    const Index run = state.range(0);
    const Index total = Index{256} << 20;
    const Rows rows{total / run / 8, run, 8 * run, run};
    for (auto _ : state) {
        for (Index block = 0; block < rows.count; block += 8) {
            for (Index i = 0; i < 8; ++i) {
                kernels->rows[static_cast<std::size_t>(store)]({8, run, 8 * run, run},
                                                               pages(1).data() + block * 8 * run + i * run,
                                                               pages(0).data() + i * total / 8 + block * run);
            }
        }
    }
    store_fence();
    count_bytes(state, total);
}

// Matrices of columns become one matrix with rows of 8 KiB, one after another, as when files of a checkpoint are
// joined.
void joined_columns(benchmark::State& state, const CopyKernels* kernels) {
    const Index run = state.range(0);
    const Index row = 8192;
    const Index rows = (Index{256} << 20) / row;
    for (auto _ : state) {
        for (Index i = 0; i < row / run; ++i) {
            kernels->rows[static_cast<std::size_t>(Store::cached)](
                {rows, run, run, row}, pages(1).data() + i * rows * run, pages(0).data() + i * run);
        }
    }
    count_bytes(state, rows * row);
}

// One rank's part of a redistribution: a tile of `rows` rows of 8 runs, each run to another memory, one after another
// or with as much room between; source and targets begin so many bytes into a cache line. The tile holds f32, and the
// memories f32 or another type. The rate counts the bytes of the tile.
void swept(benchmark::State& state, Store store, Index apart, DType to) {
    const Index run = state.range(0);
    const Index offset = state.range(1);
    const Index total = Index{64} << 20;
    const Index rows = total / run / 8;
    const Index size = size_of(to);
    MultiCopy sweep(MultiCopy::Kind::push, cast_of(DType::f32, to));
    std::vector<std::byte*> others;
    for (Index i = 0; i < 8; ++i) {
        sweep.add(static_cast<std::size_t>(i), {i * run, 4, {rows, run / 4}, {8 * run, 4}},
                  {0, size, {rows, run / 4}, {apart * run / 4 * size, size}});
        others.push_back(pages(0).data() + i * (total / 4) + offset);
    }
    sweep.arrange();
    for (auto _ : state) sweep.push(pages(1).data() + offset, others, store);
    store_fence();
    count_bytes(state, total);
}

// As above, for a matrix of f32 whose transpose is cut equally: a memory takes 1024 columns as rows of 8192 elements.
void swept_transposed(benchmark::State& state, DType to) {
    const Index offset = state.range(0);
    const Index side = 1024;
    const Index row = 8 * side * 4;
    const Index size = size_of(to);
    MultiCopy sweep(MultiCopy::Kind::push, cast_of(DType::f32, to));
    std::vector<std::byte*> others;
    for (Index i = 0; i < 8; ++i) {
        sweep.add(static_cast<std::size_t>(i), {i * side * 4, 4, {side, side}, {row, 4}},
                  {0, size, {side, side}, {size, 8 * side * size}});
        others.push_back(pages(0).data() + i * row * (side - 1) + offset);
    }
    sweep.arrange();
    for (auto _ : state) sweep.push(pages(1).data() + offset, others, Store::streaming);
    store_fence();
    count_bytes(state, row * side);
}

void transposed(benchmark::State& state, const CopyKernels* kernels, Store store) {
    const Index unit = state.range(0);
    const Index side = state.range(1);
    const auto log_unit = static_cast<std::size_t>(__builtin_ctzll(static_cast<unsigned long long>(unit)));
    const Plane plane{side, side, side * unit, side * unit};
    for (auto _ : state) {
        kernels->transpose[static_cast<std::size_t>(store)][log_unit](plane, pages(1).data(), pages(0).data());
    }
    store_fence();
    count_bytes(state, side * side * unit);
}

void transposed_naively(benchmark::State& state) {
    const Index side = state.range(0);
    const auto* source = reinterpret_cast<const float*>(pages(1).data());
    auto* target = reinterpret_cast<float*>(pages(0).data());
    for (auto _ : state) {
        for (Index i = 0; i < side; ++i) {
            for (Index j = 0; j < side; ++j) target[i * side + j] = source[j * side + i];
        }
    }
    count_bytes(state, side * side * 4);
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    using namespace reshard;
    benchmark::Initialize(&argc, argv);
    benchmark::RegisterBenchmark("memcpy/MiB", memory_copy)->Arg(256);
    benchmark::RegisterBenchmark("transpose/naive/f32", transposed_naively)->Arg(8192)->MinTime(0.1);
    for (const int offset : {0, 52}) {
        for (const int run : {64, 256, 1024, 3332, 4096, 16384}) {
            benchmark::RegisterBenchmark("sweep/streaming", swept, Store::streaming, 1, DType::f32)
                ->Args({run, offset});
            benchmark::RegisterBenchmark("sweep/streaming/apart", swept, Store::streaming, 2, DType::f32)
                ->Args({run, offset});
        }
        for (const DType to : {DType::f32, DType::bf16, DType::f16}) {
            const std::string becomes = to == DType::f32 ? "" : std::string("/") + (to == DType::bf16 ? "bf16" : "f16");
            if (to != DType::f32)
                benchmark::RegisterBenchmark(("sweep/streaming" + becomes).c_str(), swept, Store::streaming, 1, to)
                    ->Args({256, offset})
                    ->Args({4096, offset});
            benchmark::RegisterBenchmark(("sweep/cached" + becomes).c_str(), swept, Store::cached, 1, to)
                ->Args({256, offset})
                ->Args({4096, offset});
            benchmark::RegisterBenchmark(("sweep/transposed" + becomes).c_str(), swept_transposed, to)->Arg(offset);
        }
    }
    for (const CopyKernels* kernels : all_copy_kernels()) {
        auto* columns =
            benchmark::RegisterBenchmark((std::string("columns/") + kernels->name).c_str(), joined_columns, kernels);
        for (const int run : {8, 32, 128, 512, 2048}) columns->Arg(run);
        for (const Store store : {Store::cached, Store::streaming}) {
            const std::string name = std::string(kernels->name) + (store == Store::cached ? "/cached" : "/streaming");
            auto* rows = benchmark::RegisterBenchmark(("rows/" + name).c_str(), scattered_rows, kernels, store);
            for (const int run : {256, 512, 4096, 65536}) rows->Arg(run);
            auto* planes = benchmark::RegisterBenchmark(("transpose/" + name).c_str(), transposed, kernels, store);
            planes->Args({1, 16384})->Args({2, 8192})->Args({4, 8192})->Args({8, 4096})->Args({16, 4096});
            planes->Args({4, 256});
        }
    }
    benchmark::RunSpecifiedBenchmarks();
}
