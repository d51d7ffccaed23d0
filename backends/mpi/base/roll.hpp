// The attendance of ranks at collective calls, and the state of an executor on each rank. Every wait ends in time, and
// its error names the missing ranks.
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

/// The roll of one backend. Ranks meet at rank 0, and a rank that is missing after the timeout is named to all. Ranks
/// of one node meet at a board instead, as long as it is open. Blocking calls may follow a call that is well.
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

    /// Messages that say in the next call that this rank has come. If all ranks send them, no rank looks at the board.
    /// Null: none.
    void send_with(Carrier* carrier) { carrier_ = carrier; }

    /// The outcome of the last call for all ranks, after they have met. Errors: backend if this rank or another one was
    /// interrupted; all ranks get the error, and later calls fail.
    [[nodiscard]] Result<void> trouble();

    /// The key of the last call; the same on all ranks.
    [[nodiscard]] ExecutorKey key() const { return {backend_, number_}; }
    [[nodiscard]] const std::shared_ptr<Post>& post() const { return post_; }
    [[nodiscard]] int rank() const { return rank_; }

private:
    Roll() = default;
    struct Verdict {
        Result<void> on_all = {};
        bool last = false;  // no call after it
    };
    [[nodiscard]] Letter letter(Word word) const;
    void send_all(const Letter& letter) const;
    void withdraw(const std::string& why, bool last);  // tells all
    void collect();
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
    bool at_board_ = false;  // this rank came to the current call there
    std::chrono::milliseconds timeout_{};
    int rank_ = 0;
    int size_ = 1;
    std::uint64_t backend_ = 0;
    std::uint64_t number_ = 0;    // of calls
    std::map<int, Letter> left_;  // ranks that dropped the backend, or withdrew from all calls
    std::vector<Letter> mail_;    // other letters, of this call and of those to come
    std::optional<Error> broken_;
};

/// A rank in one executor, and its knowledge of its peers there. Its peers are the ranks that send messages to it or
/// get messages from it.
class Standing : NonCopyable {
public:
    /// The executor that the last call to prepare makes.
    explicit Standing(const Roll& roll);
    ~Standing();  ///< tells the peers that it was dropped

    void meet(std::vector<int> peers) { peers_ = std::move(peers); }
    /// Freed when no peer can send on it any more.
    void own(Communicator communicator) { communicators_.push_back(std::move(communicator)); }

    void start();   ///< one run more
    void finish();  ///< it went well
    /// What is left of the run is given up; then its peers are told, when none of their messages is received any more.
    void fail() { failed_ = true; }
    void abandon(const Error& why);
    void report_failure(const Error& why);
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] bool alone() const { return peers_.empty(); }

    /// This rank waits long in the run that is in flight; for missing().
    void say_waiting() const { send(Word::waiting, runs_); }
    /// The awaited peers that are not known to wait in the run themselves, or else any peers; in words.
    [[nodiscard]] std::string missing(const std::set<int>& awaited) const;

    /// Why one of the awaited peers will not take part in the run that is in flight; nothing when all may.
    [[nodiscard]] std::optional<std::string> trouble(const std::set<int>& awaited) const;
    /// The same of all peers, before it begins.
    [[nodiscard]] std::optional<std::string> trouble() const { return trouble({peers_.begin(), peers_.end()}); }

private:
    void send(Word word, std::uint64_t runs, std::string_view text = {}) const;

    std::shared_ptr<Post> post_;
    ExecutorKey key_;
    int rank_;
    std::vector<int> peers_;
    std::vector<Communicator> communicators_;
    std::uint64_t runs_ = 0;
    std::uint64_t finished_ = 0;
    bool failed_ = false;
    bool told_ = false;
    bool excused_ = false;
};

}  // namespace reshard::mpi
