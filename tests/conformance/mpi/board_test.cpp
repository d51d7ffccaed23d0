// The board of a node alone. Threads are the ranks, and the letters are plain memory, so the thread sanitizer finds
// every letter that is read before its rank has come.
#include "backends/mpi/shm/node_board.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace reshard::mpi {
namespace {

constexpr std::chrono::milliseconds timeout{20'000};
constexpr std::chrono::microseconds brief{200};

std::vector<std::byte> memory_for(std::size_t ranks) {
    return std::vector<std::byte>(static_cast<std::size_t>(NodeBoard::bytes(ranks)) + line_pair);
}

std::byte* start_of(std::vector<std::byte>& memory) {
    void* start = memory.data();
    std::size_t room = memory.size();
    return static_cast<std::byte*>(std::align(line_pair, memory.size() - line_pair, start, room));
}

std::unique_ptr<Board> board_of(std::vector<std::byte>& memory, std::size_t rank, std::size_t ranks) {
    return std::make_unique<NodeBoard>(start_of(memory), Signals::Among{rank, ranks, true}, timeout);
}

Letter letter_with(std::size_t rank, std::uint64_t number, const Result<std::uint64_t>& brought) {
    Letter letter;
    letter.rank = static_cast<std::int32_t>(rank);
    letter.number = number;
    letter.write(brought);
    return letter;
}

// Each rank comes to all meetings. In some, one rank brings another value or an error.
TEST(Board, AllRanksReadTheSameLetters) {
    constexpr std::uint64_t meetings = 2000;
    for (const std::size_t ranks : {1, 2, 5}) {
        auto memory = memory_for(ranks);
        std::vector<std::unique_ptr<Board>> boards;
        for (std::size_t rank = 0; rank < ranks; ++rank) boards.push_back(board_of(memory, rank, ranks));
        std::atomic<int> wrong = 0;
        const auto play = [&](std::size_t rank) {
            const std::unique_ptr<Board>& board = boards[rank];
            for (std::uint64_t number = 1; number <= meetings; ++number) {
                const bool odd = number % ranks == rank && number % 3 == 0;
                const bool fails = number % ranks == rank && number % 7 == 0;
                const Result<std::uint64_t> right = number;
                const Letter own = letter_with(rank, number,
                                               fails ? fail(Code::io, "no file " + std::to_string(number))
                                               : odd ? Result<std::uint64_t>(0)
                                                     : right);
                if (!board->come(own)) ++wrong;
                while (!board->all_come(number, brief)) {
                }
                const bool all_agree = number % 7 != 0 && (ranks == 1 || number % 3 != 0);
                if (board->agrees(own) != all_agree) ++wrong;
                const Letter& of_odd = board->letter_of(static_cast<int>(number % ranks), number);
                if (of_odd.number != number) ++wrong;
                if (number % 7 == 0 && of_odd.message() != "no file " + std::to_string(number)) ++wrong;
            }
        };
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < ranks; ++rank) threads.emplace_back(play, rank);
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(wrong, 0);
    }
}

// One rank closes the board while the last rank comes. Both get the same answer, whichever is first.
TEST(Board, AMeetingIsCompleteForAllOrForNone) {
    std::mt19937 random(3);
    int complete = 0;
    constexpr int trials = 300;
    for (int trial = 0; trial < trials; ++trial) {
        auto memory = memory_for(2);
        const auto first = board_of(memory, 0, 2);
        const auto second = board_of(memory, 1, 2);
        ASSERT_TRUE(first->come(letter_with(0, 1, std::uint64_t{5})));
        std::atomic<bool> go = false;
        bool came = false;
        const auto delay = random() % 200;
        std::thread late([&] {
            while (!go) {
            }
            for (std::atomic<unsigned> i = 0; i < delay; ++i) {
            }
            came = second->come(letter_with(1, 1, std::uint64_t{5}));
        });
        go = true;
        for (std::atomic<unsigned> i = 0; i < 100; ++i) {
        }
        const bool closed = first->close(1);
        late.join();
        EXPECT_EQ(came, !closed);
        EXPECT_EQ(first->all_come(1, brief), came);
        EXPECT_EQ(second->all_come(1, brief), came);
        EXPECT_EQ(first->is_open(), came);
        complete += came ? 1 : 0;
    }
    RecordProperty("complete", complete);
}

TEST(Board, OpensAfterAMeetingByLetters) {
    auto memory = memory_for(2);
    const auto first = board_of(memory, 0, 2);
    const auto second = board_of(memory, 1, 2);
    ASSERT_TRUE(first->come(letter_with(0, 1, std::uint64_t{5})));
    ASSERT_TRUE(first->close(1));
    EXPECT_TRUE(first->close(1));
    EXPECT_FALSE(second->come(letter_with(1, 1, std::uint64_t{5})));
    EXPECT_FALSE(second->come(letter_with(1, 2, std::uint64_t{5})));
    first->open_after(3);
    EXPECT_FALSE(first->all_come(1, brief));
    EXPECT_FALSE(first->all_come(3, brief));
    const Letter own = letter_with(0, 4, std::uint64_t{6});
    EXPECT_TRUE(first->come(own));
    EXPECT_FALSE(first->all_come(4, brief));
    EXPECT_TRUE(first->has_come(0, 4));
    EXPECT_FALSE(first->has_come(1, 4));
    EXPECT_TRUE(second->come(letter_with(1, 4, std::uint64_t{6})));
    EXPECT_TRUE(first->all_come(4, brief));
    EXPECT_TRUE(first->agrees(own));
    EXPECT_FALSE(second->close(4));
}

// A rank counts itself while it sleeps at the board. A rank that comes rings the bells of sleepers only if the count is
// not 0. A slow machine may end a sleep before the other rank comes, so the test repeats the meeting until a bell
// rings.
TEST(Board, WhoComesRingsForRanksThatSleepThere) {
    constexpr std::chrono::microseconds sleep{200'000};
    constexpr std::uint32_t woken_by_second = 2;
    auto memory = memory_for(2);
    const auto first = board_of(memory, 0, 2);
    const auto second = board_of(memory, 1, 2);
    const auto signals = Signals::over(start_of(memory), {0, 2, true}, 0, timeout);
    SignalLine& line = signals->line(0);
    const auto letter = [](std::size_t rank, std::uint64_t number) { return letter_with(rank, number, number); };
    std::uint64_t number = 0;
    for (bool rang = false; !rang;) {
        ASSERT_LT(++number, 50U);
        const std::uint32_t before = line.bell;
        ASSERT_TRUE(first->come(letter(0, number)));
        std::thread sleeper([&] {
            while (!first->all_come(number, sleep)) {
            }
        });
        while (line.asleep == 0) std::this_thread::yield();
        ASSERT_TRUE(second->come(letter(1, number)));
        sleeper.join();
        rang = line.bell != before;
    }
    const std::uint32_t before = line.bell;
    line.asleep = woken_by_second;  // at something else
    ASSERT_TRUE(first->come(letter(0, ++number)));
    ASSERT_TRUE(second->come(letter(1, number)));
    EXPECT_EQ(line.bell, before);
    EXPECT_EQ(line.asleep, woken_by_second);
}

}  // namespace
}  // namespace reshard::mpi
