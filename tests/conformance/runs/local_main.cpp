// Runs random schedules over the ranks of one process, each a thread.
//   runs_local [--seed N] [--count N] [--schedule SEED] [--slack X] [--hang SECONDS]
#include <fmt/format.h>

#include <atomic>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "party.hpp"
#include "reshard/backends/local.hpp"
#include "tally.hpp"
#include "watchdog.hpp"

namespace reshard::runs {
namespace {

// A rank of a world that others share. The world outlives it.
class Borrowed final : public Backend {
public:
    explicit Borrowed(Backend& rank) : rank_(rank) {}
    [[nodiscard]] std::string_view name() const override { return rank_.name(); }
    [[nodiscard]] Index rank() const override { return rank_.rank(); }
    [[nodiscard]] Index size() const override { return rank_.size(); }
    Result<void> agree(const Result<std::uint64_t>& own) override { return rank_.agree(own); }
    Result<std::unique_ptr<Prepared>> prepare(std::vector<RankPlan> plans) override {
        return rank_.prepare(std::move(plans));
    }
    Result<std::unique_ptr<Memory>> allocate(Index bytes) override { return rank_.allocate(bytes); }

private:
    Backend& rank_;
};

Report play_in_threads(const Schedule& schedule, const Request& asked, Watchdog& watchdog) {
    local::World world(schedule.ranks, {.timeout = schedule.transport.timeout});
    std::vector<Report> reports(static_cast<std::size_t>(schedule.ranks));
    std::vector<std::thread> threads;
    for (Index rank = 0; rank < schedule.ranks; ++rank) {
        threads.emplace_back([&, rank] {
            const auto number = static_cast<std::size_t>(rank);
            const auto make = [&]() -> Result<std::unique_ptr<Backend>> {
                return std::make_unique<Borrowed>(world.rank(rank));
            };
            const auto enter = [&](std::string call) {
                if (asked.one) std::cout << call + "\n" << std::flush;
                watchdog.enter(number, std::move(call));
            };
            reports[number] = play(schedule, rank, make, enter, bounds_of(asked));
        });
    }
    for (std::thread& thread : threads) thread.join();
    Report all;
    for (const Report& one : reports) add(all, one);
    return all;
}

// Runs several schedules at a time, since some of them wait.
int run(const Request& asked) {
    fmt::print("{} schedules from seed {}\n", asked.count, asked.seed);
    Tally tally;
    std::mutex mutex;
    std::atomic<std::uint64_t> next = 0;
    const auto play_next = [&] {
        Watchdog watchdog(std::chrono::seconds(asked.seconds_max), 8);
        for (std::uint64_t i = next++; i < static_cast<std::uint64_t>(asked.count); i = next++) {
            const Schedule schedule = draw_schedule(asked.seed + i);
            if (asked.one) fmt::print("{}", describe(schedule));
            watchdog.begin(describe(schedule) + fmt::format("runs_local --schedule {}", schedule.seed));
            const Report report = play_in_threads(schedule, asked, watchdog);
            watchdog.end();
            const std::lock_guard lock(mutex);
            tally.add(schedule, report, "runs_local");
        }
    };
    std::vector<std::thread> at_a_time;
    for (int i = 0; i < 4; ++i) at_a_time.emplace_back(play_next);
    for (std::thread& one : at_a_time) one.join();
    return tally.finish(asked, "local, a thread for each rank");
}

}  // namespace
}  // namespace reshard::runs

int main(int argc, char** argv) {
    using namespace reshard::runs;
    const auto asked = read_arguments(std::span(argv, static_cast<std::size_t>(argc)),
                                      [] { return std::uint64_t{std::random_device{}() % 1'000'000'000}; });
    if (asked) return run(*asked);
    std::cerr << asked.error().message << '\n';
    return 2;
}
