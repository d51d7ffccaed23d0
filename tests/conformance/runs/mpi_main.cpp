// Runs random schedules under mpirun, over two to eight ranks. As many as fit run side by side, each on its own
// communicator.
//   runs_mpi [--seed N] [--count N] [--schedule SEED] [--slack X] [--hang SECONDS]
#include <fmt/format.h>
#include <mpi.h>

#include <iostream>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "party.hpp"
#include "reshard/backends/mpi.hpp"
#include "tally.hpp"
#include "watchdog.hpp"

namespace reshard::runs {
namespace {

int rank_in(MPI_Comm communicator) {
    int rank = 0;
    MPI_Comm_rank(communicator, &rank);
    return rank;
}

int size_of(MPI_Comm communicator) {
    int size = 0;
    MPI_Comm_size(communicator, &size);
    return size;
}

mpi::Options options_of(const Transport& transport) {
    mpi::Options options;
    options.shared_memory = transport.shared_memory;
    options.ranks_per_node = transport.ranks_per_node;
    options.bounce_bytes = transport.bounce_bytes;
    options.piece_bytes = transport.piece_bytes;
    options.unregistered_buffers = static_cast<mpi::UnregisteredBuffers>(transport.unregistered_buffers);
    options.timeout = transport.timeout;
    return options;
}

// Ranks wait for the slowest rank without using its processor.
void meet(MPI_Comm communicator) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(communicator, &request);
    for (int look = 0, done = 0; done == 0; ++look) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (look < 200)
            std::this_thread::yield();
        else
            std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

// Schedules that run at the same time, and the first rank of each.
struct Batch {
    std::vector<std::uint64_t> seeds;
    std::vector<int> first_rank;
};

// Schedules that take seconds run beside others that take seconds.
std::vector<Batch> batches_of(const Request& asked, int size) {
    std::vector<Batch> all;
    for (const bool slow : {true, false}) {
        int used = size;
        for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(asked.count); ++i) {
            const std::uint64_t seed = asked.seed + i;
            if (takes_seconds(seed) != slow) continue;
            const int ranks = static_cast<int>(ranks_of(seed));
            if (used + ranks > size) all.emplace_back(), used = 0;
            all.back().seeds.push_back(seed);
            all.back().first_rank.push_back(used);
            used += ranks;
        }
    }
    return all;
}

std::string packed(const Report& report) {
    const auto& [wrong, right, errors, told, named, longest_call] = report;
    std::string text = fmt::format("{} {} {} {} {}\n", right, errors, told, named, longest_call);
    for (const std::string& line : wrong) text += line + '\n';
    return text;
}

Report unpacked(const std::string& text) {
    std::istringstream lines(text);
    Report report;
    lines >> report.right >> report.errors >> report.told >> report.named >> report.longest_call;
    std::string line;
    std::getline(lines, line);
    while (std::getline(lines, line)) report.wrong.push_back(line);
    return report;
}

class Job {
public:
    explicit Job(const Request& asked) : asked_(asked), watchdog_(std::chrono::seconds(asked.seconds_max), 1) {
        MPI_Comm_dup(MPI_COMM_WORLD, &control_);
    }
    ~Job() { MPI_Comm_free(&control_); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    int run() {
        for (const Batch& batch : batches_of(asked_, size_of(control_))) run(batch);
        int code = 0;
        if (rank_in(control_) == 0) code = tally_.finish(asked_, fmt::format("MPI, {} ranks", size_of(control_)));
        MPI_Bcast(&code, 1, MPI_INT, 0, control_);
        return code;
    }

private:
    void run(const Batch& batch) {
        const int rank = rank_in(control_);
        std::optional<std::size_t> own;
        for (std::size_t i = 0; i < batch.seeds.size(); ++i) {
            const int within = rank - batch.first_rank[i];
            if (within >= 0 && within < ranks_of(batch.seeds[i])) own = i;
        }
        Report report;
        MPI_Comm group = MPI_COMM_NULL;
        const int color = own ? static_cast<int>(*own) : MPI_UNDEFINED;
        // The ranks of a group are in another order than in the job.
        MPI_Comm_split(control_, color, static_cast<int>((rank * 5 + batch.seeds.front()) % 8), &group);
        if (group != MPI_COMM_NULL) {
            report = play_on(group, batch.seeds[*own]);
            MPI_Comm_free(&group);
        }
        meet(control_);
        watchdog_.end();
        collect(batch, own, report);
    }

    Report play_on(MPI_Comm group, std::uint64_t seed) {
        const Schedule schedule = draw_schedule(seed);
        const Index rank = rank_in(group);
        if (asked_.one && rank == 0) fmt::print("{}", describe(schedule)), std::fflush(stdout);
        meet(group);
        const std::string line = fmt::format("{} --schedule {}", repeat(), seed);
        watchdog_.begin(rank == 0 ? describe(schedule) + line : line);
        const auto make = [&] { return mpi::make_backend(group, options_of(schedule.transport)); };
        const auto enter = [&](std::string call) {
            if (asked_.one) fmt::print("{:.3f} {}\n", MPI_Wtime() - begun_, call), std::fflush(stdout);
            watchdog_.enter(0, std::move(call));
        };
        return play(schedule, rank, make, enter, bounds_of(asked_));
    }

    // Collects all results of a batch on rank 0.
    void collect(const Batch& batch, const std::optional<std::size_t>& own, const Report& report) {
        const int rank = rank_in(control_);
        std::string text = own ? packed(report) : std::string();
        std::vector<int> lengths(static_cast<std::size_t>(size_of(control_)));
        const int length = static_cast<int>(text.size());
        MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, control_);
        std::vector<int> places(lengths.size() + 1);
        std::partial_sum(lengths.begin(), lengths.end(), places.begin() + 1);
        std::string all(static_cast<std::size_t>(places.back()), ' ');
        MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR, 0, control_);
        if (rank != 0) return;
        for (std::size_t i = 0; i < batch.seeds.size(); ++i) {
            const Schedule schedule = draw_schedule(batch.seeds[i]);
            Report sum;
            for (Index member = 0; member < schedule.ranks; ++member) {
                const auto at = static_cast<std::size_t>(batch.first_rank[i] + member);
                add(sum,
                    unpacked(all.substr(static_cast<std::size_t>(places[at]), static_cast<std::size_t>(lengths[at]))));
            }
            tally_.add(schedule, sum, repeat());
        }
    }
    [[nodiscard]] std::string repeat() const { return fmt::format("mpirun -n {} runs_mpi", size_of(control_)); }

    Request asked_;
    MPI_Comm control_ = MPI_COMM_NULL;
    Watchdog watchdog_;
    Tally tally_;
    double begun_ = MPI_Wtime();
};

// Returns on every rank the number that rank 0 draws.
std::uint64_t drawn_by_rank_0() {
    std::uint64_t seed = std::random_device{}() % 1'000'000'000;
    MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return seed;
}

int main_on_a_rank(int argc, char** argv) {
    const auto asked = read_arguments(std::span(argv, static_cast<std::size_t>(argc)), drawn_by_rank_0);
    if (!asked) {
        if (rank_in(MPI_COMM_WORLD) == 0) std::cerr << asked.error().message << '\n';
        return 2;
    }
    if (size_of(MPI_COMM_WORLD) < 8) {
        if (rank_in(MPI_COMM_WORLD) == 0) std::cerr << "schedules have up to 8 ranks\n";
        return 2;
    }
    if (rank_in(MPI_COMM_WORLD) == 0) fmt::print("{} schedules from seed {}\n", asked->count, asked->seed);
    return Job(*asked).run();
}

}  // namespace
}  // namespace reshard::runs

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const int code = reshard::runs::main_on_a_rank(argc, argv);
    MPI_Finalize();
    return code;
}
