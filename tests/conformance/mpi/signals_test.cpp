// Tests alone the flags that report the progress of a node's ranks. Threads are the ranks, and the flags
// guard plain memory. So the thread sanitizer finds every read that no flag orders after its write.
#include "backends/mpi/shm/signals.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <thread>

#include "backends/mpi/shm/excuse.hpp"
#include "support/property.hpp"

namespace reshard::mpi {
namespace {

using std::chrono::milliseconds;
using Random = std::mt19937_64;

constexpr std::uint64_t runs = 12;
constexpr std::size_t words = 32;
constexpr milliseconds timeout{20'000};

// The value of one rank in one run.
std::uint64_t value(std::size_t rank, std::uint64_t run, std::size_t word) { return 1000 * run + 32 * rank + word; }

/// The fault of a rank and its run: before it enters, while others read, or after it has read.
struct Fault {
    std::size_t rank = 0;
    std::uint64_t run = 0;
    int phase = 0;
};

struct Trial {
    std::size_t ranks = 2;
    bool crowded = false;
    std::optional<Fault> fault;
    std::uint64_t seed = 0;
};

class Rank {
public:
    Rank(const Trial& trial, std::size_t rank, std::byte* memory, std::vector<std::vector<std::uint64_t>>& tiles)
        : trial_(trial),
          signals_(Signals::over(memory, {rank, trial.ranks, trial.crowded}, 2, timeout)),
          tiles_(tiles),
          random_(trial.seed * 16 + rank) {}

    // Returns the number of successful runs.
    std::uint64_t play() {
        for (std::uint64_t run = 1; run <= runs; ++run) {
            if (!one(run)) return run - 1;
            signals_->finish_run();
        }
        return runs;
    }
    [[nodiscard]] const std::string& error() const { return error_; }
    [[nodiscard]] bool wrong() const { return wrong_; }

private:
    bool one(std::uint64_t run) {
        const std::size_t mine = signals_->rank();
        if (fails(run, 0)) return false;
        std::vector<std::uint64_t>& tile = tiles_[mine];
        for (std::size_t word = 0; word < words; ++word) tile[word] = value(mine, run, word);
        signals_->address(mine, run % 2).offset = static_cast<decltype(Address::offset)>(run);
        say(&SignalLine::entered, run);
        if (!wait(&SignalLine::entered, run) || fails(run, 1)) return false;
        const auto read = signals_->touch([&]() -> Result<void> {
            look(run);
            return {};
        });
        if (!read) return gives_up(read.error());
        if (fails(run, 2)) return false;
        say(&SignalLine::done, run);
        return wait(&SignalLine::done, run);
    }

    void look(std::uint64_t run) {
        for (std::size_t rank = 0; rank < trial_.ranks; ++rank) {
            wrong_ = wrong_ || signals_->address(rank, run % 2).offset != static_cast<decltype(Address::offset)>(run);
            for (std::size_t word = 0; word < words; ++word)
                wrong_ = wrong_ || tiles_[rank][word] != value(rank, run, word);
        }
    }

    void say(Counter SignalLine::*counter, std::uint64_t run) {
        (signals_->line(signals_->rank()).*counter).store(run, std::memory_order_release);
        for (std::size_t rank = 0; rank < trial_.ranks; ++rank)
            if (rank != signals_->rank()) signals_->wake(rank);
    }

    // Mixes polls and sleeps.
    bool wait(Counter SignalLine::*counter, std::uint64_t run) {
        Signals::Wanteds wanted;
        for (std::size_t rank = 0; rank < trial_.ranks; ++rank)
            if (rank != signals_->rank()) wanted.push_back({rank, &(signals_->line(rank).*counter), run});
        Waiting waiting(*signals_);
        for (;;) {
            const Slice most = random_() % 3 == 0 ? only_poll : random_() % 2 == 0 ? Slice(50) : long_slice;
            const auto there = waiting.on(wanted, Signals::Need::all, most);
            if (!there) return gives_up(there.error());
            if (*there) return true;
            if (most == only_poll) std::this_thread::yield();
        }
    }

    // After all ranks know, no rank reads its tile.
    bool fails(std::uint64_t run, int phase) {
        const auto& fault = trial_.fault;
        if (!fault || fault->rank != signals_->rank() || fault->run != run || fault->phase != phase) return false;
        return !gives_up({Code::backend, "the fault of the trial"});
    }

    bool gives_up(const Error& error) {
        error_ = error.message;
        signals_->fail_all(error);
        std::ranges::fill(tiles_[signals_->rank()], 0);
        return false;
    }

    const Trial& trial_;
    std::unique_ptr<Signals> signals_;
    std::vector<std::vector<std::uint64_t>>& tiles_;
    Random random_;
    std::string error_;
    bool wrong_ = false;
};

void play(const Trial& trial) {
    const auto bytes = static_cast<std::size_t>(Signals::bytes(static_cast<Index>(trial.ranks), 2));
    struct alignas(line_pair) Line {
        std::byte bytes[line_pair];
    };
    std::vector<Line> memory(bytes / sizeof(Line) + 1, Line{});
    std::vector<std::vector<std::uint64_t>> tiles(trial.ranks, std::vector<std::uint64_t>(words));
    std::vector<std::unique_ptr<Rank>> ranks;
    for (std::size_t rank = 0; rank < trial.ranks; ++rank)
        ranks.push_back(std::make_unique<Rank>(trial, rank, memory.front().bytes, tiles));
    std::vector<std::uint64_t> well(trial.ranks);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < trial.ranks; ++rank)
        threads.emplace_back([&, rank] { well[rank] = ranks[rank]->play(); });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t rank = 0; rank < trial.ranks; ++rank) {
        EXPECT_FALSE(ranks[rank]->wrong()) << "rank " << rank;
        if (!trial.fault) {
            EXPECT_EQ(well[rank], runs) << ranks[rank]->error();
        } else {
            const std::string& error = ranks[rank]->error();
            EXPECT_NE(error.find("the fault of the trial"), std::string::npos) << error;
            EXPECT_EQ(well[rank], trial.fault->run - 1);
        }
    }
}

TEST(Signals, OrderWhatRanksReadBehindWhatWasWritten) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(200)); ++seed) {
        SCOPED_TRACE(seed);
        play({2 + seed % 4, seed % 2 == 0, std::nullopt, seed});
        if (HasFailure()) return;
    }
}

TEST(Signals, NobodyComesToTheTilesOfARankThatHasFailed) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(test::cases(300)); ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        const std::size_t ranks = 2 + seed % 4;
        const Fault fault{random() % ranks, 1 + random() % runs, static_cast<int>(random() % 3)};
        play({ranks, seed % 2 == 0, fault, seed});
        if (HasFailure()) return;
    }
}

// Ranks set and clear their reasons while others read. A reader gets a whole text that some rank has set.
TEST(Signals, AnExcuseIsReadWholeOrNotAtAll) {
    constexpr std::size_t sayers = 3;
    static Excuse excuse;
    ASSERT_FALSE(excuse.of(0));
    excuse.say(1, std::string(1000, 'x'));
    EXPECT_EQ(excuse.of(1)->find_first_not_of('x'), std::string::npos);
    EXPECT_LT(excuse.of(1)->size(), 1000U);
    excuse.say(2, "not heard");
    EXPECT_FALSE(excuse.of(2));
    excuse.take_back(2);
    EXPECT_TRUE(excuse.of(1));
    excuse.take_back(1);
    EXPECT_FALSE(excuse.of(1));

    // Letters depend on rank and round, so a mix of two rounds or two ranks is detected.
    const auto said = [](std::size_t rank, std::uint64_t round) {
        return std::string(40 + 150 * (round % 2), static_cast<char>('a' + 8 * rank + round % 8));
    };
    std::atomic<std::size_t> at_work{sayers};
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < sayers; ++rank)
        threads.emplace_back([&, rank] {
            for (std::uint64_t round = 0; round < static_cast<std::uint64_t>(test::cases(20'000)); ++round) {
                excuse.say(rank, said(rank, round));
                if (round % 16 == 0) std::this_thread::yield();
                excuse.take_back(rank);
            }
            --at_work;
        });
    std::uint64_t read = 0;
    std::string wrong;
    while (at_work != 0 || read == 0) {
        if (at_work == 0) excuse.say(0, said(0, 0));  // no text was read while others wrote
        for (std::size_t rank = 0; rank < sayers; ++rank) {
            const auto text = excuse.of(rank);
            if (!text) continue;
            ++read;
            const auto round = static_cast<std::uint64_t>(text->empty() ? 0 : text->front() - 'a') % 8;
            if (*text != said(rank, round)) wrong = *text;
        }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, "") << "of " << read << " texts";
}

}  // namespace
}  // namespace reshard::mpi
