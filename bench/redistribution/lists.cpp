// Many small arrays at once: one executor for the list, against one for each array. `lists [ARRAYS [BYTES [serve]]]`
// under mpirun. With `serve` the last two ranks take over what the others have trained.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>

#include "redistribution/contestants.hpp"
#include "reshard/mpi.hpp"

namespace reshard::bench {
namespace {

struct Array {
    Case one;
    std::unique_ptr<Memory> source;
    std::unique_ptr<Memory> target;
};

std::vector<Array> make_arrays(Backend& backend, int arrays, Index bytes, bool serve) {
    std::vector<Array> all;
    const std::string x = fmt::format("x={}", backend.size());
    const Index rows = std::max<Index>(bytes / 4 / 64, 1);
    Question question{"small", x, fmt::format("f32[{}@x,64]", rows), fmt::format("f32[{},64@x]", rows)};
    if (serve) {
        const Index trainers = backend.size() - 2;
        question.mesh = fmt::format("x={}", trainers);
        question.target_mesh = fmt::format("x=2[{}-{}]", trainers, trainers + 1);
    }
    for (int i = 0; i < arrays; ++i) {
        Array array{make_case(question, backend.rank()).value(), nullptr, nullptr};
        array.source = backend.allocate(array.one.whole.source_bytes).value();
        array.target = backend.allocate(array.one.whole.target_bytes).value();
        fill(array.one, array.source->bytes());
        all.push_back(std::move(array));
    }
    return all;
}

double timed(std::vector<std::unique_ptr<Bound>>& runs) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    for (auto& bound : runs) {
        if (const auto done = bound->start().value()->wait(); !done) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Index wrong(const std::vector<Array>& arrays) {
    Index all = 0;
    for (const Array& array : arrays) {
        all += count_wrong(array.one, array.target->bytes());
        wipe(array.target->bytes());
    }
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int measure_lists(int count, Index bytes, bool serve) {
    auto backend = mpi::make_backend(MPI_COMM_WORLD).value();
    std::vector<Array> arrays = make_arrays(*backend, count, bytes, serve);
    std::vector<Plan> plans;
    std::vector<Buffers> buffers;
    std::vector<Executor> executors;
    std::vector<std::unique_ptr<Bound>> each;
    for (Array& array : arrays) {
        plans.push_back(array.one.plan);
        buffers.push_back({array.source->bytes(), array.target->bytes(), {}});
        executors.push_back(Executor::prepare(array.one.plan, *backend).value());
        each.push_back(executors.back().bind({&buffers.back(), 1}).value());
    }
    Executor list = Executor::prepare(plans, *backend).value();
    std::vector<std::unique_ptr<Bound>> together;
    together.push_back(list.bind(buffers).value());
    std::vector<double> seconds_each;
    std::vector<double> seconds_list;
    timed(each);
    Index bad = wrong(arrays);
    timed(together);
    bad += wrong(arrays);
    for (int round = 0; round < 15; ++round) {
        seconds_each.push_back(timed(each));
        seconds_list.push_back(timed(together));
    }
    bad += wrong(arrays);
    std::ranges::sort(seconds_each);
    std::ranges::sort(seconds_list);
    if (backend->rank() == 0) {
        fmt::print("{} arrays of {} bytes, {} ranks: one by one {:.3f} ms, as a list {:.3f} ms, {:.1f}x; wrong {}\n",
                   count, bytes, backend->size(), seconds_each[7] * 1e3, seconds_list[7] * 1e3,
                   seconds_each[7] / seconds_list[7], bad);
    }
    return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reshard::bench

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int arrays = argc > 1 ? std::atoi(argv[1]) : 300;
    const int code = reshard::bench::measure_lists(arrays, argc > 2 ? std::atoll(argv[2]) : 32768, argc > 3);
    MPI_Finalize();
    return code;
}
