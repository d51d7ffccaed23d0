// For a reader of NCCL: your communicator, your stream, tiles in device memory. Rows to columns on four ranks, which
// are threads here but may also be processes.
#include <cstdio>
#include <thread>
#include "reshard/model/rows.hpp"

#include <reshard/backends/nccl.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

constexpr int ranks = 4;
constexpr Index n = 840;

// The number of wrong elements.
int move_rows_to_columns(ncclComm_t communicator, int rank) {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    Mesh mesh{{"ranks", ranks}};
    Layout by_rows = make_layout(mesh, DType::f32, {n, n}, P{"ranks", {}}).value();
    Layout by_columns = make_layout(mesh, DType::f32, {n, n}, P{{}, "ranks"}).value();
    Plan plan = synthesize(by_rows, by_columns).value().plan();
    std::vector<float> values(tile_count(by_rows, rank), static_cast<float>(rank));

    // [README nccl]
    auto backend = nccl::make_backend(communicator).value();  // splits one off yours; never aborts yours
    Executor executor = Executor::prepare(judge(plan, backend->capabilities()), *backend).value();
    auto rows = backend->allocate(executor.plans()[0].source_bytes).value();  // or your own cudaMalloc
    auto columns = backend->allocate(executor.plans()[0].target_bytes).value();
    auto workspace = backend->allocate(executor.workspace_bytes()).value();
    auto bound = executor.bind(Buffers{rows->bytes(), columns->bytes(), workspace->bytes()}).value();
    cudaMemcpyAsync(rows->bytes().data(), values.data(), rows->bytes().size(), cudaMemcpyHostToDevice, stream);
    auto run = bound->start_on(stream).value();  // behind your work, before what you enqueue next
    const auto moved = run->wait();              // or test(), or nothing but your stream
    if (!moved) std::puts(describe(moved.error()).c_str());
    // [README nccl end]

    std::vector<float> got(columns->bytes().size() / sizeof(float));
    static_cast<void>(backend->get(columns->bytes(), std::as_writable_bytes(std::span(got))));
    int wrong = moved ? 0 : 1;
    const Index width = n / ranks;
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < width; ++j) {
            wrong += got[static_cast<std::size_t>(i * width + j)] != static_cast<float>(i / width) ? 1 : 0;
        }
    }
    run.reset();
    cudaStreamDestroy(stream);
    return wrong;
}

}  // namespace

int main() {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::puts("there is no GPU here");
        return 0;
    }
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<int> wrong(ranks, 1);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            ncclComm_t communicator = nullptr;
            cudaSetDevice(rank % devices);
            if (ncclCommInitRank(&communicator, ranks, id, rank) != ncclSuccess) return;
            wrong[static_cast<std::size_t>(rank)] = move_rows_to_columns(communicator, rank);
            ncclCommDestroy(communicator);
        });
    }
    for (std::thread& thread : threads) thread.join();
    const int all = wrong[0] + wrong[1] + wrong[2] + wrong[3];
    std::printf("wrong %d of %lld\n", all, static_cast<long long>(n * n));
    return all == 0 ? 0 : 1;
}
