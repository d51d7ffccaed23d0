// Small sums inside a node against MPI's own: MPI_Allreduce and MPI_Reduce_scatter_block of doubles. All contestants
// run in one launch, in turn, round by round. A time is the slowest rank's. Run it under mpirun; it prints a table.
//   small_sums [ROUNDS [CALLS [BYTES...]]]      of a summand; 8 B to 64 KiB by default
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/timing.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"

namespace reshard {
namespace {

using bench::median;
using bench::now;
using bench::require;

struct Contestant {
    const char* name;
    std::vector<double>& out;
    std::function<void()> run;
    std::vector<double> seconds = {};  // a call, by round
};

// Rank r holds (r + 1) * i in element i of its summand. Element i of the sum is i times the sum of all r + 1.
void race(Backend& backend, bool scatter, Index count, int rounds, int calls) {
    const Index ranks = backend.size();
    const Mesh mesh{{"ranks", ranks}};
    const auto layout = [&](const char* text) {
        return require(parse_layout(mesh, fmt::format(fmt::runtime(text), count)));
    };
    const Layout source = layout("f64[{}]{{U:ranks}}");
    const Layout target = layout(scatter ? "f64[{}@ranks]" : "f64[{}]");
    const auto made = require(synthesize(source, target, {.capabilities = backend.capabilities()}));
    Executor executor = require(Executor::prepare(made, backend));
    std::vector<double> in(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < in.size(); ++i)
        in[i] = static_cast<double>((backend.rank() + 1) * static_cast<Index>(i));
    const auto tile = static_cast<std::size_t>(scatter ? count / ranks : count);
    std::vector<double> own(tile);
    std::vector<double> of_mpi(tile);
    const auto memory = require(backend.allocate(count * 16));
    const std::span shared(reinterpret_cast<double*>(memory->bytes().data()), 2 * in.size());
    std::ranges::copy(in, shared.begin());
    const auto shared_in = shared.first(in.size());
    const auto shared_out = shared.subspan(in.size(), tile);
    const auto bound =
        require(executor.bind(Buffers{std::as_bytes(std::span(in)), std::as_writable_bytes(std::span(own)), {}}));
    std::vector<Contestant> all = {
        {"door", own, [&] { require(redistribute(backend, source, target, in, own)); }},
        {"executor", own, [&] { require(executor.run(in, own)); }},
        {"allocated", own, [&] { require(executor.run(shared_in, shared_out)); }},
        {"bound", own, [&] { require(require(bound->start())->wait()); }},
        {"MPI", of_mpi, [&] {
             const auto most = static_cast<int>(tile);
             if (scatter)
                 MPI_Reduce_scatter_block(in.data(), of_mpi.data(), most, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
             else
                 MPI_Allreduce(in.data(), of_mpi.data(), most, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
         }}};
    const Index first = scatter ? backend.rank() * (count / ranks) : 0;
    const auto right = [&](std::span<const double> out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
            if (out[i] != static_cast<double>((first + static_cast<Index>(i)) * ranks * (ranks + 1) / 2)) return false;
        }
        return true;
    };
    for (int round = 0; round <= rounds; ++round) {
        for (Contestant& one : all) {
            std::ranges::fill(one.out, -1);
            one.run();
            MPI_Barrier(MPI_COMM_WORLD);
            const double begin = now();
            for (int i = 0; i < calls; ++i) one.run();
            double taken = (now() - begin) / calls;
            MPI_Allreduce(MPI_IN_PLACE, &taken, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            const bool shares = std::string_view(one.name) == "allocated";
            if (!right(shares ? std::span<const double>(shared_out) : std::span<const double>(one.out)))
                MPI_Abort(MPI_COMM_WORLD, 2);
            if (round > 0) one.seconds.push_back(taken);
        }
    }
    if (backend.rank() != 0) return;
    fmt::print("| {} | {} | {} B |", ranks, scatter ? "reduce_scatter" : "all_reduce", count * 8);
    for (const Contestant& one : all) fmt::print(" {:.2f} |", 1e6 * median(one.seconds));
    for (const Contestant& one : {all[0], all[1], all[2]}) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < one.seconds.size(); ++i) ratios.push_back(all[4].seconds[i] / one.seconds[i]);
        fmt::print(" {:.2f} |", median(ratios));
    }
    fmt::print("\n");
    std::fflush(stdout);
}

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    using namespace reshard;
    MPI_Init(&argc, &argv);
    {
        const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
        const int calls = argc > 2 ? std::atoi(argv[2]) : 100;
        std::vector<Index> sizes = {8, 64, 512, 4096, 16384, 65536};
        if (argc > 3) sizes.clear();
        for (int i = 3; i < argc; ++i) sizes.push_back(std::atoll(argv[i]));
        const auto backend = require(mpi::make_backend(MPI_COMM_WORLD));
        if (backend->rank() == 0)
            fmt::print(
                "microseconds a call, medians; a gain is the time of MPI over it\n| ranks | sum | a summand | door | "
                "executor | allocated | bound | MPI | gain of the door | of the executor | of allocated |\n");
        for (const bool scatter : {false, true}) {
            for (const Index bytes : sizes) {
                if (!scatter || bytes / 8 >= backend->size()) race(*backend, scatter, bytes / 8, rounds, calls);
            }
        }
        clear(*backend);
    }
    MPI_Finalize();
    return 0;
}
