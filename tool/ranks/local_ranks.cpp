// Ranks as threads of this process.
#include <fmt/format.h>

#include "reshard/backends/local.hpp"
#include "tool/ranks/thread_ranks.hpp"

namespace reshard::cli {
namespace {

constexpr Index threads_max = 512;

class LocalRanks final : public Ranks {
public:
    explicit LocalRanks(Index ranks) : world_(ranks, {.timeout = std::chrono::minutes(10)}) {}

    std::string name() const override { return "local"; }
    bool one_process() const override { return true; }
    Capabilities capabilities() override { return world_.rank(0).capabilities(); }

    int drive(const std::function<int(Rank&)>& body) override {
        Barrier barrier(world_.size());
        return on_threads(world_.size(), [&](Index r) {
            ThreadRank rank(world_.rank(r), barrier);
            return body(rank);
        });
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
