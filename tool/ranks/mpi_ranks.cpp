// Ranks as processes under MPI. The tool initializes and finalizes MPI.
#include "tool/ranks/ranks.hpp"

#ifdef RESHARD_HAS_MPI

#include <fmt/format.h>

#include <numeric>

#include "backends/baseline/alltoallw.hpp"
#include "backends/baseline/reductions.hpp"
#include "backends/baseline/unit_tasks.hpp"
#include "reshard/backends/mpi.hpp"
#include "src/base/try.hpp"

namespace reshard::cli {
namespace {

class MpiRank final : public Rank {
public:
    MpiRank(Backend& backend, std::chrono::seconds timeout) : backend_(backend), timeout_(timeout) {}

    Backend& backend() override { return backend_; }
    void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
    bool one_process() const override { return backend_.size() == 1; }
    Result<std::unique_ptr<Backend>> by_hand(ByHand way) override {
        if (way == ByHand::alltoallw) return mpi::make_alltoallw_backend(MPI_COMM_WORLD, timeout_);
        if (way == ByHand::reductions) return mpi::make_reductions_backend(MPI_COMM_WORLD);
        return mpi::make_unit_tasks_backend(
            MPI_COMM_WORLD, way == ByHand::broadcasts ? mpi::UnitTasks::broadcasts : mpi::UnitTasks::messages);
    }
    Result<std::unique_ptr<Backend>> messages() override {
        mpi::Options options;
        options.shared_memory = false;
        options.timeout = timeout_;
        return mpi::make_backend(MPI_COMM_WORLD, options);
    }

    std::vector<std::string> share(std::string mine) override {
        const auto ranks = static_cast<std::size_t>(size());
        const int length = static_cast<int>(mine.size());
        std::vector<int> lengths(ranks);
        MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::vector<int> begins(ranks);
        std::exclusive_scan(lengths.begin(), lengths.end(), begins.begin(), 0);
        std::string all(static_cast<std::size_t>(begins.back() + lengths.back()), '\0');
        MPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), begins.data(), MPI_CHAR,
                       MPI_COMM_WORLD);
        std::vector<std::string> result;
        for (std::size_t r = 0; r < ranks; ++r) {
            result.push_back(all.substr(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(lengths[r])));
        }
        return result;
    }

private:
    Backend& backend_;
    std::chrono::seconds timeout_;
};

class MpiRanks final : public Ranks {
public:
    MpiRanks(std::chrono::seconds timeout, Index ranks_per_node) : timeout_(timeout), ranks_per_node_(ranks_per_node) {}
    MpiRanks(const MpiRanks&) = delete;
    MpiRanks& operator=(const MpiRanks&) = delete;
    ~MpiRanks() override {
        backend_.reset();  // its communicator must be freed before MPI ends
        MPI_Finalize();
    }

    Result<void> begin(Index devices) {
        int ranks = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &ranks);
        if (ranks < devices) {
            return fail(Code::mismatch, fmt::format("the mesh has {} devices, {} ranks were started", devices, ranks));
        }
        mpi::Options options;
        options.timeout = timeout_;
        options.ranks_per_node = ranks_per_node_;
        RESHARD_ASSIGN(backend_, mpi::make_backend(MPI_COMM_WORLD, options));
        return {};
    }

    std::string name() const override { return "mpi"; }
    bool one_process() const override { return false; }
    Capabilities capabilities() override { return backend_->capabilities(); }

    int drive(const std::function<int(Rank&)>& body) override {
        MpiRank rank(*backend_, timeout_);
        return body(rank);
    }

private:
    std::unique_ptr<Backend> backend_;
    std::chrono::seconds timeout_;
    Index ranks_per_node_;
};

}  // namespace

Result<std::unique_ptr<Ranks>> mpi_ranks(Index devices, std::chrono::seconds timeout, Index ranks_per_node) {
    int given = 0;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
        return fail(Code::backend, "MPI_Init_thread failed");
    }
    auto ranks = std::make_unique<MpiRanks>(timeout, ranks_per_node);
    RESHARD_CHECK(ranks->begin(devices));
    return ranks;
}

}  // namespace reshard::cli

#else

namespace reshard::cli {

Result<std::unique_ptr<Ranks>> mpi_ranks(Index, std::chrono::seconds, Index) {
    return fail(Code::unsupported, "this build has no mpi backend (it found no MPI when it was configured)");
}

}  // namespace reshard::cli

#endif
