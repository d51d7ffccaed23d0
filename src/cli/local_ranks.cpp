// Ranks as threads of this process.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "meeting.hpp"
#include "reshard/local.hpp"

namespace reshard::cli {
namespace {

constexpr Index threads_max = 512;

class LocalRank final : public Rank {
public:
    LocalRank(Backend& backend, Meeting& meeting) : backend_(backend), meeting_(meeting) {}

    Backend& backend() override { return backend_; }
    void barrier() override { meeting_.barrier.arrive_and_wait(); }

    std::vector<std::string> share(std::string mine) override { return meeting_.share(index(), std::move(mine)); }

    Result<std::unique_ptr<Backend>> alltoallw() override {
        return fail(Code::unsupported, "MPI_Alltoallw needs the mpi backend");
    }
    Result<std::unique_ptr<Backend>> messages() override {
        return fail(Code::unsupported, "MPI_Alltoallw needs the mpi backend");
    }

private:
    Backend& backend_;
    Meeting& meeting_;
};

class LocalRanks final : public Ranks {
public:
    explicit LocalRanks(Index ranks) : world_(ranks, std::chrono::minutes(10)) {}

    std::string name() const override { return "local"; }
    bool one_process() const override { return true; }

    int each(const std::function<int(Rank&)>& body) override {
        const Index ranks = world_.size();
        Meeting meeting(ranks);
        std::vector<int> codes(static_cast<std::size_t>(ranks));
        std::vector<std::thread> threads;
        for (Index r = 0; r < ranks; ++r) {
            threads.emplace_back([&, r] {
                LocalRank rank(world_.rank(r), meeting);
                codes[static_cast<std::size_t>(r)] = body(rank);
            });
        }
        for (std::thread& thread : threads) thread.join();
        return *std::max_element(codes.begin(), codes.end());
    }

private:
    local::World world_;
};

}  // namespace

Result<std::unique_ptr<Ranks>> local_ranks(Index devices) {
    if (devices > threads_max) {
        return fail(Code::unsupported,
                    fmt::format("the local backend drives at most {} ranks, the mesh has {}", threads_max, devices));
    }
    return std::make_unique<LocalRanks>(devices);
}

}  // namespace reshard::cli
