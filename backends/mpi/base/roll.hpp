// The attendance of ranks at collective calls. Every wait ends in time, and its error names the missing ranks.
#pragma once

#include <optional>
#include <string>

#include "backends/mpi/base/board.hpp"
#include "reshard/backends/backend.hpp"

namespace reshard::mpi {

/// The calls that ranks meet in.
enum class Call : std::int32_t { agree, prepare };

/// Collective over a caller's communicator. When it is well, all ranks have come, and none has failed; blocking calls
/// may follow. Errors: backend where that is not so within the time.
[[nodiscard]] Result<void> all_come(MPI_Comm communicator, const Result<void>& own, std::string_view call,
                                    std::chrono::milliseconds timeout);

/// Data that travel with this rank's letters to the others. A rank takes the data of its peers when all ranks agree.
class Enclosure {
public:
    virtual ~Enclosure() = default;
    /// For this rank; Post::data_bytes_max at most. Stays valid until the next call.
    [[nodiscard]] virtual std::span<const std::byte> to(int rank) = 0;
    virtual void take(int rank, std::span<const std::byte> data) = 0;
};

/// The roll of one backend. A rank that is missing after the timeout is named to all. Ranks of one node meet at a
/// board, as long as it is open. Few ranks of several nodes write to each other; many ranks meet at rank 0. Blocking
/// calls may follow a call that is well.
class Roll : NonCopyable {
public:
    /// Collective.
    [[nodiscard]] static Result<std::unique_ptr<Roll>> make(MPI_Comm communicator, std::chrono::milliseconds timeout);
    ~Roll();

    /// Ranks meet there from now on. All ranks call it between the same calls.
    void meet_at(std::unique_ptr<Board> board) { board_ = std::move(board); }

    /// Collective. Errors: mismatch, on all ranks, where values differ; the first failure that a rank brings instead of
    /// a value, with its code, and on that rank its own; backend where a rank did not come, gave up waiting, or has
    /// dropped its backend: then no later call is well either.
    [[nodiscard]] Result<void> meet(Call call, const Result<std::uint64_t>& own);

    /// How long a rank polls for letters before it lets others run.
    void poll_for(Post::Clock::duration patience) { patience_ = patience; }

    /// Messages that say in the next call that this rank has come. If all ranks send them, no rank looks at the board.
    /// Null: none. `alone`: no other run of this thread is in flight, so the call may wait for them.
    void send_with(Carrier* carrier, bool alone) {
        carrier_ = carrier;
        alone_ = alone;
    }

    /// True if ranks write to each other. The same on all ranks.
    [[nodiscard]] bool vote() const { return !board_ && size_ <= voters_max; }
    /// Data for the next call. pre: the ranks vote, and all enclose data if they bring the same value. Null: none.
    void enclose(Enclosure* enclosure) { enclosure_ = enclosure; }

    /// The outcome of the last call for all ranks, after they have met. Errors: backend if this rank or another one was
    /// interrupted; all ranks get the error, and later calls fail.
    [[nodiscard]] Result<void> trouble();

    /// The key of the last call; the same on all ranks.
    [[nodiscard]] ExecutorKey key() const { return {backend_, number_}; }
    [[nodiscard]] const std::shared_ptr<Post>& post() const { return post_; }
    [[nodiscard]] int rank() const { return rank_; }

private:
    // With more ranks, two messages of each rank to and from rank 0 are fewer than one of each rank to each other one.
    static constexpr int voters_max = 16;

    Roll() = default;
    struct Verdict {
        Result<void> on_all = {};
        bool last = false;  // no call after it
    };
    [[nodiscard]] Letter letter(Word word) const;
    void send_all(const Letter& letter) const;
    void withdraw(const std::string& why, bool last);  // tells all
    void collect(Post::Look look = Post::Look::always, std::size_t most = std::numeric_limits<std::size_t>::max());
    Verdict vote(const Letter& own);
    [[nodiscard]] Verdict count(const Letter& own, const std::map<int, const Mail*>& come);
    [[nodiscard]] bool come_to_board();
    [[nodiscard]] bool carrier_agrees(std::chrono::microseconds most) const;
    Verdict meet(const Letter& own);
    [[nodiscard]] std::optional<Verdict> on_board(const Letter& own, std::chrono::microseconds most) const;
    [[nodiscard]] std::optional<Verdict> leave_board(const Letter& own) const;
    Verdict preside(const Letter& own);
    std::optional<Verdict> judge(const std::map<int, Letter>& come, bool in_time) const;
    [[nodiscard]] Verdict compare(const std::map<int, Letter>& come) const;
    Verdict attend(const Letter& own);

    std::shared_ptr<Post> post_;
    std::unique_ptr<Board> board_;  // null: ranks meet by letters only
    Carrier* carrier_ = nullptr;
    bool alone_ = false;
    Enclosure* enclosure_ = nullptr;
    bool at_board_ = false;  // this rank came to the current call there
    std::chrono::milliseconds timeout_{};
    Post::Clock::duration patience_{};
    int rank_ = 0;
    int size_ = 1;
    std::uint64_t backend_ = 0;
    std::uint64_t number_ = 0;    // of calls
    Letter own_;                  // of the last call
    std::map<int, Letter> left_;  // ranks that dropped the backend, or withdrew from all calls
    std::vector<Mail> mail_;      // other letters, of this call and of those to come
    std::optional<Error> broken_;
};

}  // namespace reshard::mpi
