// A gather in pieces. A stream makes the pieces and uses them as they arrive; the host does not wait between. The four
// ranks are threads here.
#include <cstdio>
#include <thread>

#include <reshard/backends/nccl.hpp>
#include <reshard/reshard.hpp>

using namespace reshard;

namespace {

constexpr int ranks = 4;
constexpr Index rows = 128;  // rows of each rank
constexpr Index n = 256;     // columns
constexpr std::size_t row_bytes = n * sizeof(float);

std::span<std::byte> rows_of(std::span<std::byte> matrix, const Interval& some) {
    return matrix.subspan(static_cast<std::size_t>(some.begin) * row_bytes,
                          static_cast<std::size_t>(some.size()) * row_bytes);
}

// Stands for a product of matrices.
void enqueue_copy(std::span<const std::byte> from, std::span<std::byte> to, cudaStream_t stream) {
    cudaMemcpyAsync(to.data(), from.data(), from.size(), cudaMemcpyDeviceToDevice, stream);
}

// The number of wrong elements.
int gather(ncclComm_t communicator, int rank) {
    auto backend = nccl::make_backend(communicator).value();
    const Mesh mesh{{"ranks", ranks}};
    const Layout by_rows = make_layout(mesh, DType::f32, {rows * ranks, n}, P{"ranks", {}}).value();
    const Layout whole = make_layout(mesh, DType::f32, {rows * ranks, n}, P{{}, {}}).value();
    const Plan plan{by_rows, whole, {{StepKind::all_gather, whole}}};
    const auto made = backend->allocate(rows * Index{row_bytes}).value();
    const auto mine = backend->allocate(rows * Index{row_bytes}).value();
    const auto all = backend->allocate(ranks * rows * Index{row_bytes}).value();
    const auto used = backend->allocate(ranks * rows * Index{row_bytes}).value();
    const std::vector<float> values(rows * n, static_cast<float>(rank));
    if (!backend->put(std::as_bytes(std::span(values)), made->bytes())) return 1;
    cudaStream_t compute = nullptr;
    cudaStream_t wire = nullptr;
    cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&wire, cudaStreamNonBlocking);
    const auto make = [&](const Interval& some) {
        enqueue_copy(rows_of(made->bytes(), some), rows_of(mine->bytes(), some), compute);
    };
    const auto use = [&](const Side& some) {
        for (const Interval& interval : some.intervals)
            enqueue_copy(rows_of(all->bytes(), interval), rows_of(used->bytes(), interval), compute);
    };

    const int failed = [&] {
        // [README overlap_nccl]
        const Split split{.dim = 0, .block = rows, .ends = {rows / 4, rows / 2, rows}, .order = {}, .overlapped = true};
        Executor executor = Executor::prepare(judge(plan, split), *backend).value();
        const auto bound = executor.bind({mine->bytes(), all->bytes(), {}}).value();
        const auto run = nccl::start(*bound, wire, {.offers_withheld = true}).value();
        for (std::size_t k = 0; k < split.ends.size(); ++k) {
            make({k == 0 ? 0 : split.ends[k - 1], split.ends[k]});  // on the stream `compute`
            if (!nccl::offer(*run, k, compute)) return 1;           // the stream `wire` waits for that
        }
        for (std::size_t place = 0; place < split.ends.size(); ++place) {
            const std::size_t k = piece_at(split, place);
            cudaStreamWaitEvent(compute, nccl::event(*run, k).value(), 0);
            use(piece_of(tile(whole, rank), split, k)[0]);  // on `compute`, while the next one travels
        }
        if (!run->wait()) return 1;  // here the host learns of faults
        // [README overlap_nccl end]
        return cudaStreamSynchronize(compute) == cudaSuccess ? 0 : 1;
    }();

    std::vector<float> got(ranks * rows * n);
    int wrong = backend->get(used->bytes(), std::as_writable_bytes(std::span(got))) ? failed : 1;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == static_cast<float>(i / (rows * n)) ? 0 : 1;
    cudaStreamDestroy(compute);
    cudaStreamDestroy(wire);
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
            wrong[static_cast<std::size_t>(rank)] = gather(communicator, rank);
            ncclCommDestroy(communicator);
        });
    }
    for (std::thread& thread : threads) thread.join();
    const int all = wrong[0] + wrong[1] + wrong[2] + wrong[3];
    std::printf("wrong %d of %lld\n", all, static_cast<long long>(ranks * ranks * rows * n));
    return all == 0 ? 0 : 1;
}
