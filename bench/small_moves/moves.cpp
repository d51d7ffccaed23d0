// Small moves of rows to columns: the front doors, a kept executor, and MPI's own ways. All contestants run in one
// launch, in turn, round by round. A time is the slowest rank's. Run it under mpirun on 2, 4 or 8 ranks; it prints a
// table.
//   small_moves [ROUNDS [CALLS [BYTES_MAX [RANKS_PER_NODE]]]]      tiles of up to 64 KiB a rank by default
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/mpi_ways.hpp"
#include "bench/timing.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"
#ifdef RESHARD_HAS_C
#include "reshard/c_mpi.h"
#endif

namespace reshard {
namespace {

using bench::median;
using bench::require;
using bench::world_rank;
using bench::world_size;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Tile {
    std::span<double> in;
    std::span<double> out;
};

struct Contestant {
    std::string name;
    Tile tile;
    std::function<void(const Tile&)> run;
    std::vector<double> seconds = {};  // a call, by round
};

// Element (i, j) is side * i + j.
bool right(std::span<const double> out, Index side) {
    const Index width = side / world_size();
    for (Index i = 0; i < side; ++i) {
        for (Index j = 0; j < width; ++j) {
            const double wanted = static_cast<double>(side * i + j + world_rank() * width);
            if (out[static_cast<std::size_t>(i * width + j)] != wanted) return false;
        }
    }
    return true;
}

void fill(std::span<double> in) {
    const Index first = world_rank() * std::ssize(in);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(first + static_cast<Index>(i));
}

double least(const std::vector<double>& seconds) { return *std::ranges::min_element(seconds); }

// "3.86 (3.73)": median and least, in microseconds. Other users of the machine change the least one little.
std::string shown(const std::vector<double>& seconds) {
    return fmt::format("{:.2f} ({:.2f})", 1e6 * median(seconds), 1e6 * least(seconds));
}

double of_slowest(double own) {
    MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return own;
}

class Race {
public:
    Race(Backend& backend, Index side, int rounds, int calls)
        : backend_(backend), side_(side), rounds_(rounds), calls_(calls) {}

    void run() {
        const Mesh mesh{{"ranks", world_size()}};
        const Layout rows = require(make_layout(mesh, DType::f64, {side_, side_}, P{"ranks", {}}));
        const Layout columns = require(make_layout(mesh, DType::f64, {side_, side_}, P{{}, "ranks"}));
        const auto made = require(synthesize(rows, columns, {.capabilities = backend_.capabilities()}));
        Executor executor = require(Executor::prepare(made, backend_));
        const auto count = static_cast<std::size_t>(side_ * side_ / world_size());
        std::vector<double> own(2 * count);
        const auto memory = require(backend_.allocate(static_cast<Index>(2 * count * sizeof(double))));
        const std::span shared(reinterpret_cast<double*>(memory->bytes().data()), 2 * count);
        const Tile callers{std::span(own).first(count), std::span(own).last(count)};
        const Tile allocated{shared.first(count), shared.last(count)};
        for (const Tile& tile : {callers, allocated}) fill(tile.in);

        const auto door = [&](const Tile& tile) { require(redistribute(backend_, rows, columns, tile.in, tile.out)); };
        const auto run = [&](const Tile& tile) { require(executor.run(tile.in, tile.out)); };
        const auto bind = [&](const Tile& tile) {
            return require(executor.bind(Buffers{std::as_bytes(tile.in), std::as_writable_bytes(tile.out), {}}));
        };
        const auto of_callers = bind(callers);
        const auto of_allocated = bind(allocated);
        const auto start = [&](Bound& bound) {
            const auto begin = Clock::now();
            const auto ticket = require(bound.start());
            started_ += seconds_since(begin);
            require(ticket->wait());
        };
        const Pairs pairs(world_size(), static_cast<int>(side_));
        const Neighbours neighbours;
        std::vector<MPI_Request> requests = pairs.persistent(callers.in.data(), callers.out.data());
        const auto start_all = [&](const Tile&) {
            const int count_of_all = 2 * world_size();
            MPI_Startall(count_of_all, requests.data());
            MPI_Waitall(count_of_all, requests.data(), MPI_STATUSES_IGNORE);
        };
        const auto on_world = [&](const Tile& tile) {
            require(mpi::redistribute(MPI_COMM_WORLD, rows, columns, tile.in, tile.out));
        };
        all_ = {{"door", callers, door},
                {"door, allocated", allocated, door},
                {"executor", callers, run},
                {"executor, allocated", allocated, run},
                {"bound", callers, [&](const Tile&) { start(*of_callers); }},
                {"bound, allocated", allocated, [&](const Tile&) { start(*of_allocated); }},
                {"door of a communicator", callers, on_world},
                {"Alltoallw", callers, [&](const Tile& tile) { pairs.alltoallw(tile.in.data(), tile.out.data()); }},
                {"neighbours", callers,
                 [&](const Tile& tile) { pairs.neighbours(neighbours.get(), tile.in.data(), tile.out.data()); }},
                {"persistent", callers, start_all}};
        ways_ = {"Alltoallw", "neighbours", "persistent"};
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
        requests.push_back(pairs.persistent_alltoallw(callers.in.data(), callers.out.data()));
        all_.push_back({"Alltoallw_init", callers, [&](const Tile&) {
                            MPI_Start(&requests.back());
                            MPI_Wait(&requests.back(), MPI_STATUS_IGNORE);
                        }});
        ways_.emplace_back("Alltoallw_init");
#endif
#ifdef RESHARD_HAS_C
        reshard_mesh* c_mesh = nullptr;
        reshard_layout* c_rows = nullptr;
        reshard_layout* c_columns = nullptr;
        const std::string text = fmt::format("f64[{0}@ranks,{0}]", side_);
        const std::string turned = fmt::format("f64[{0},{0}@ranks]", side_);
        const bool well = reshard_mesh_parse(fmt::format("ranks={}", world_size()).c_str(), &c_mesh, nullptr) == 0 &&
                          reshard_layout_parse(c_mesh, text.c_str(), &c_rows, nullptr) == 0 &&
                          reshard_layout_parse(c_mesh, turned.c_str(), &c_columns, nullptr) == 0;
        if (!well) MPI_Abort(MPI_COMM_WORLD, 1);
        all_.push_back({"C door", callers, [&](const Tile& tile) {
                            const int code = reshard_mpi_redistribute(
                                MPI_COMM_WORLD, c_rows, c_columns, tile.in.data(),
                                static_cast<std::int64_t>(tile.in.size_bytes()), tile.out.data(),
                                static_cast<std::int64_t>(tile.out.size_bytes()), nullptr);
                            if (code != 0) MPI_Abort(MPI_COMM_WORLD, 1);
                        }});
#endif
        measure();
        report();
        for (MPI_Request& request : requests) MPI_Request_free(&request);
        mpi::clear(MPI_COMM_WORLD);
#ifdef RESHARD_HAS_C
        reshard_mpi_clear(MPI_COMM_WORLD, nullptr);
        reshard_release(c_columns);
        reshard_release(c_rows);
        reshard_release(c_mesh);
#endif
        clear(backend_);
    }

private:
    void measure() {
        for (Contestant& one : all_) {
            std::ranges::fill(one.tile.out, -1);
            for (int i = 0; i < 3; ++i) one.run(one.tile);
            if (!right(one.tile.out, side_)) MPI_Abort(MPI_COMM_WORLD, 2);
        }
        for (int round = 0; round < rounds_; ++round) {
            for (Contestant& one : all_) {
                started_ = 0;
                MPI_Barrier(MPI_COMM_WORLD);
                const auto begin = Clock::now();
                for (int i = 0; i < calls_; ++i) one.run(one.tile);
                one.seconds.push_back(of_slowest(seconds_since(begin) / calls_));
                if (one.name == "bound") starts_.push_back(of_slowest(started_ / calls_));
            }
        }
    }
    [[nodiscard]] const std::vector<double>& of(std::string_view name) const {
        return std::ranges::find(all_, name, &Contestant::name)->seconds;
    }
    // The fastest way of MPI over a contestant, as the medians of the rounds' ratios, and as ratio of the least times.
    [[nodiscard]] std::string gain(std::string_view name) const {
        const auto& own = of(name);
        std::vector<double> ratios;
        for (std::size_t round = 0; round < own.size(); ++round) {
            double fastest = of(ways_.front())[round];
            for (const std::string& way : ways_) fastest = std::min(fastest, of(way)[round]);
            ratios.push_back(fastest / own[round]);
        }
        double fastest = least(of(ways_.front()));
        for (const std::string& way : ways_) fastest = std::min(fastest, least(of(way)));
        return fmt::format("{:.2f} ({:.2f})", median(ratios), fastest / least(own));
    }
    void report() const {
        if (world_rank() != 0) return;
        fmt::print("| {} | {} B |", world_size(), side_ * side_ / world_size() * 8);
        for (const Contestant& one : all_) fmt::print(" {} |", shown(one.seconds));
        fmt::print(" {} | {} | {} |\n", shown(starts_), gain("door"), gain("door, allocated"));
        std::fflush(stdout);
    }

    Backend& backend_;
    Index side_;
    int rounds_;
    int calls_;
    std::vector<Contestant> all_;
    std::vector<std::string> ways_;  // of MPI
    std::vector<double> starts_;
    double started_ = 0;
};

}  // namespace
}  // namespace reshard

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    {
        using namespace reshard;
        const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
        const int calls = argc > 2 ? std::atoi(argv[2]) : 200;
        mpi::Options options;
        if (argc > 4) options.ranks_per_node = std::atoll(argv[4]);
        const auto backend = require(mpi::make_backend(MPI_COMM_WORLD, options));
        const Index bytes_max = argc > 3 ? std::atoll(argv[3]) : 65536;
        if (world_rank() == 0) {
            fmt::print(
                "microseconds a call, median (least) of {} rounds of {} calls; a gain is the time of the fastest "
                "way of MPI over the door's\n",
                rounds, calls);
            fmt::print(
                "| ranks | a rank | door | allocated | executor | allocated | bound | allocated | door of a "
                "communicator | Alltoallw | neighbours | persistent |"
#ifdef OMPI_HAVE_MPI_EXT_PCOLLREQ
                " Alltoallw_init |"
#endif
#ifdef RESHARD_HAS_C
                " C door |"
#endif
                " of bound: start | gain | allocated |\n");
        }
        // The least square is one element for each pair of ranks. Each next one has four times the bytes.
        for (Index side = world_size(); side * side / world_size() * 8 <= bytes_max; side *= 2)
            Race(*backend, side, rounds, calls).run();
    }
    MPI_Finalize();
    return 0;
}
