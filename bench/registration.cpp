// The time of registering memory, beside touching as much fresh shared memory and copying into it: in turn, one line of
// JSON. registration [--bytes N] [--rounds N]
// With --moves N, under mpirun: the total time of 1, 10, 100, ... N moves of the caller's memory from rows to columns.
// --bytes is the size of the array on all ranks. Registrations are included, preparations are not.
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/mpi/shm/registered_pages.hpp"
#include "bench/mpi_ways.hpp"
#include "bench/timing.hpp"
#include "reshard/backends/mpi.hpp"
#include "reshard/reshard.hpp"

namespace {

using namespace reshard;
using bench::median;
using mpi::RegisteredPages;

double seconds_of(const std::function<void()>& body) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Memory of the caller's, in small pages or as the system likes.
class Caller {
public:
    explicit Caller(std::size_t bytes) : bytes_(bytes) {
        start_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start_ == MAP_FAILED) std::abort();
        std::memset(start_, 1, bytes);
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    ~Caller() { munmap(start_, bytes_); }
    [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(start_), bytes_}; }

private:
    std::size_t bytes_;
    void* start_;
};

// The same for a program that copies into its own shared memory; huge pages on request, or as the system gives them.
void touch_and_copy(std::span<const std::byte> from, bool huge) {
    const int descriptor = memfd_create("baseline", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(from.size())) != 0) std::abort();
    void* const start = mmap(nullptr, from.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (start == MAP_FAILED) std::abort();
    if (huge) madvise(start, from.size(), MADV_HUGEPAGE);
    for (std::size_t at = 0; at < from.size(); at += 4096) static_cast<volatile std::byte*>(start)[at] = std::byte{0};
    std::memcpy(start, from.data(), from.size());
    munmap(start, from.size());
    close(descriptor);
}

template <class Value>
Value require(Result<Value> result) {
    if (!result) {
        fmt::print(stderr, "{}\n", describe(result.error()));
        std::exit(1);
    }
    if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

// Each way moves memory of its own.
class Moves {
public:
    Moves(std::size_t bytes, int moves) : moves_(moves) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
        MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
        while (static_cast<std::size_t>(side_ + ranks_) * static_cast<std::size_t>(side_ + ranks_) * 8 <= bytes)
            side_ += ranks_;
        const Mesh mesh{{"ranks", ranks_}};
        rows_ = require(make_layout(mesh, DType::f64, {side_, side_}, P{"ranks", {}}));
        columns_ = require(make_layout(mesh, DType::f64, {side_, side_}, P{{}, "ranks"}));
        if (rank_ == 0) fmt::print("{} ranks, {} x {} doubles, seconds\n", ranks_, side_, side_);
    }

    void unregistered() { on_backend("unregistered", {}, false); }
    void registered_at_once() { on_backend("registered at once", {}, true); }
    void register_after() {
        mpi::Options options;
        options.register_after = require(mpi::moves_that_repay(MPI_COMM_WORLD));
        on_backend(fmt::format("register_after {}", options.register_after), options, false);
    }
    void alltoallw() {
        const Pairs pairs(ranks_, side_);
        run("MPI_Alltoallw", [&](auto in, auto out) { pairs.alltoallw(in.data(), out.data()); });
    }

private:
    void on_backend(const std::string& name, const mpi::Options& options, bool at_once) {
        const auto backend = require(mpi::make_backend(MPI_COMM_WORLD, options));
        Executor executor = require(Executor::prepare(
            require(synthesize(rows_, columns_, {.capabilities = backend->capabilities()})), *backend));
        std::vector<Registration> held;
        run(name, [&](std::span<double> in, std::span<double> out) {
            if (at_once && held.empty()) {
                for (const std::span<double> one : {in, out})
                    held.push_back(require(backend->register_memory(std::as_writable_bytes(one))));
            }
            require(executor.run(std::span<const double>(in), out));
        });
    }
    template <class Move>
    void run(const std::string& name, const Move& move) {
        const auto take = [&] {
            const auto doubles = static_cast<std::size_t>(side_) * static_cast<std::size_t>(side_ / ranks_);
            const auto& caller = memory_.emplace_back(std::make_unique<Caller>(doubles * sizeof(double)));
            return std::span(reinterpret_cast<double*>(caller->bytes().data()), doubles);
        };
        const std::span<double> in = take();
        const std::span<double> out = take();
        std::string line = fmt::format("{:20}", name);
        MPI_Barrier(MPI_COMM_WORLD);
        const auto begin = std::chrono::steady_clock::now();
        for (int moved = 1, shown = 1; moved <= moves_; ++moved) {
            move(in, out);
            if (moved < shown) continue;
            shown *= 10;
            double own = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            MPI_Allreduce(MPI_IN_PLACE, &own, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            line += fmt::format("  {} {:.4f}", moved, own);
        }
        if (rank_ == 0) fmt::print("{}\n", line);
    }

    int moves_;
    int rank_ = 0;
    int ranks_ = 1;
    int side_ = 0;
    Layout rows_;
    Layout columns_;
    std::vector<std::unique_ptr<Caller>> memory_;  // until all backends are gone
};

void compare_moves(std::size_t bytes, int moves) {
    MPI_Init(nullptr, nullptr);
    {
        Moves all(bytes, moves);
        all.unregistered();
        all.register_after();
        all.registered_at_once();
        all.alltoallw();
    }
    MPI_Finalize();
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t bytes = std::size_t{256} << 20;
    int rounds = 11;
    int moves = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (std::string(argv[i]) == "--bytes") bytes = std::strtoull(argv[i + 1], nullptr, 10);
        if (std::string(argv[i]) == "--rounds") rounds = std::atoi(argv[i + 1]);
        if (std::string(argv[i]) == "--moves") moves = std::atoi(argv[i + 1]);
    }
    if (moves > 0) {
        compare_moves(bytes, moves);
        return 0;
    }
    std::vector<double> there;
    std::vector<double> back;
    std::vector<double> small;
    std::vector<double> huge;
    std::vector<double> over_small;
    std::vector<double> over_huge;
    Index held = 0;
    Index most = 0;
    for (int round = 0; round < rounds; ++round) {
        const Caller caller(bytes);
        small.push_back(seconds_of([&] { touch_and_copy(caller.bytes(), false); }));
        huge.push_back(seconds_of([&] { touch_and_copy(caller.bytes(), true); }));
        std::shared_ptr<RegisteredPages> pages;
        there.push_back(seconds_of([&] {
            auto made = RegisteredPages::make(caller.bytes(), OnFork::share, [&](Index change) {
                held += change;
                most = std::max(most, held);
            });
            if (!made) {
                fmt::print(stderr, "{}\n", made.error().message);
                std::exit(1);
            }
            pages = std::move(*made);
        }));
        back.push_back(seconds_of([&] { static_cast<void>(pages->end()); }));
        over_small.push_back(there.back() / small.back());
        over_huge.push_back(there.back() / huge.back());
    }
    fmt::print(
        "{{\"bytes\":{},\"rounds\":{},\"register_seconds\":{:.6f},\"end_seconds\":{:.6f},"
        "\"touch_and_copy_seconds\":{:.6f},\"touch_and_copy_huge_seconds\":{:.6f},\"register_over_touch\":{:.3f},"
        "\"register_over_touch_huge\":{:.3f},\"most_bytes_beside\":{}}}\n",
        bytes, rounds, median(there), median(back), median(small), median(huge), median(over_small), median(over_huge),
        most);
    return 0;
}
